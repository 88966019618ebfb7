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

// Guardian is a guardian that this process has started. It is its child.
type Guardian struct {
	PID  int
	line *os.File // nothing is ever written to it: the kernel closes it at any death
	undo *os.File // what undoes the terminal's modes, a file in memory; nil for no terminal
}

// keeping is the descriptor of the line's other end in the guardian, undoing that of what
// undoes the terminal's modes.
const keeping, undoing = 3, 4

// Post starts a guardian. It inherits nothing from its keeper: no terminal, no
// streams, no working directory. It opens the terminal that it is to restore, nil
// for none, by name. Once it has killed what carried its mark, "" for nobody, it becomes
// then. With an error the guardian is nil, whose methods do nothing.
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
	env := append([]string{"GOMAXPROCS=1"}, then.Env...) // it does one thing, and must start fast
	if len(then.Remove) > 0 {
		env = append(env, spelt(filesVariable, then.Remove))
	}
	if tty != nil {
		env = append(env, spelt(terminalVariable, tty))
		if fd, err := unix.MemfdCreate("heartbeat-undo", unix.MFD_CLOEXEC); err == nil {
			g.undo = os.NewFile(uintptr(fd), "heartbeat-undo")
			undo = g.undo
		}
	}
	g.PID, err = syscall.ForkExec("/proc/self/exe", append([]string{Name, mark}, then.Command...), &syscall.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), held.Fd(), undo.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		g.Leave()
		return nil, fmt.Errorf("post a guardian: %w", err)
	}
	return g, nil
}

// spelt is a variable of a guardian's environment. What it holds has a spelling.
func spelt(name string, what any) string {
	text, _ := json.Marshal(what)
	return name + "=" + string(text)
}

// maxUndo is longer than what undoes all modes of a terminal, twice.
const maxUndo = 2048

// Undo has the guardian print this to the terminal at the keeper's death. It wakes nobody.
func (g *Guardian) Undo(b []byte) {
	if g == nil || len(b) > maxUndo {
		return
	}
	record := append(binary.LittleEndian.AppendUint16(nil, uint16(len(b))), b...)
	_, _ = g.undo.WriteAt(record, 0) // fails without a terminal, or for want of memory: then nothing is printed, or the last
}

// Dismiss ends the guardian without any killing, and reaps it. Nobody else may have
// reaped it before.
func (g *Guardian) Dismiss() {
	if g == nil {
		return
	}
	_ = syscall.Kill(g.PID, syscall.SIGKILL) // our child, perhaps a zombie: the pid is still its
	for err := error(syscall.EINTR); err == syscall.EINTR; {
		_, err = syscall.Wait4(g.PID, nil, 0, nil)
	}
	g.Leave()
}

// Leave makes the guardian kill what carries its mark, as at the keeper's death.
func (g *Guardian) Leave() {
	_, _ = g.line.Close(), g.undo.Close() // there may be none of the latter
}

// serves is set once this program can be a guardian.
var serves bool

// Serve must be the first call of a program that uses [Post]. It does not return in
// a guardian's process.
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
