package guardian

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Guardian is a guardian that this process has started, as its child.
type Guardian struct {
	PID     int
	process *os.Process // holds a pidfd, so it never means a later process with this PID
	line    *os.File    // never written to; the kernel closes it at any death
	undo    *os.File    // in-memory file of what undoes the terminal's modes; nil without a terminal
}

// keeping is the guardian's descriptor of the line's other end, undoing that of the undo file.
const keeping, undoing = 3, 4

// Post starts a guardian, which inherits no terminal, streams or working directory from its keeper. It opens tty,
// the terminal to restore (nil for none), by name, kills what carries mark ("" for nothing), and then does then.
// With an error Post returns nil, on which Undo and Dismiss do nothing.
func Post(mark string, tty *Terminal, then Then) (*Guardian, error) {
	if !serves {
		return nil, errors.New("post a guardian: this program is none")
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("post a guardian: %w", err)
	}
	defer null.Close()
	held, line, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("post a guardian: %w", err)
	}
	defer held.Close()
	g, undo := &Guardian{line: line}, null
	env := append([]string{"GOMAXPROCS=1"}, then.Env...) // one task, and a fast start
	if len(then.Remove) > 0 {
		env = append(env, asVariable(filesVariable, then.Remove))
	}
	if tty != nil {
		env = append(env, asVariable(terminalVariable, tty))
		if fd, err := unix.MemfdCreate("heartbeat-undo", unix.MFD_CLOEXEC); err == nil {
			g.undo = os.NewFile(uintptr(fd), "heartbeat-undo")
			undo = g.undo
		}
	}
	g.process, err = os.StartProcess("/proc/self/exe", append([]string{Name, mark}, then.Command...), &os.ProcAttr{
		Dir: "/", Env: env, Files: []*os.File{null, null, null, held, undo}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		g.Leave()
		return nil, fmt.Errorf("post a guardian: %w", err)
	}
	g.PID = g.process.Pid
	return g, nil
}

// asVariable returns a variable of a guardian's environment, as JSON.
func asVariable(name string, what any) string {
	text, _ := json.Marshal(what)
	return name + "=" + string(text)
}

// maxUndo exceeds twice what undoes all modes of a terminal, in bytes.
const maxUndo = 2048

// Undo sets what the guardian prints to the terminal when the keeper dies, without waking the guardian.
func (g *Guardian) Undo(b []byte) {
	if g == nil || len(b) > maxUndo {
		return
	}
	record := append(binary.LittleEndian.AppendUint16(nil, uint16(len(b))), b...)
	_, _ = g.undo.WriteAt(record, 0) // on an error the guardian prints the last record, or nothing
}

// Dismiss ends the guardian before it acts and reaps it. The guardian may have been killed and reaped before.
func (g *Guardian) Dismiss() {
	if g == nil {
		return
	}
	_ = g.process.Kill()    // fails if it has ended
	_, _ = g.process.Wait() // fails if it was reaped
	g.Leave()
}

// Leave makes the guardian act as at the keeper's death.
func (g *Guardian) Leave() {
	_, _ = g.line.Close(), g.undo.Close() // undo may be nil
}

// serves is set once this program can be a guardian.
var serves bool

// Serve must be the first call of a program that uses [Post]. It does not return in a guardian.
func Serve() {
	serves = true
	if len(os.Args) < 2 || os.Args[0] != Name {
		return
	}
	guard(os.Args[1])
	if then := os.Args[2:]; len(then) > 0 {
		signal.Reset()
		_, _ = syscall.Close(keeping), syscall.Close(undoing)
		_ = syscall.Exec("/proc/self/exe", then, os.Environ()) // nobody is left to tell
	}
	os.Exit(0)
}
