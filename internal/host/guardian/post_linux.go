package guardian

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Guardian is a guardian that this process has started. It is its child.
type Guardian struct {
	PID  int
	line *os.File // nothing is ever written to it: the kernel closes it at any death
}

// keeping is the descriptor of the line's other end in the guardian.
const keeping = 3

// Post starts a guardian. It inherits nothing from its keeper: no terminal, no
// streams, no working directory. It opens the terminal that it is to restore, nil
// for none, by name.
func Post(mark string, tty *Terminal) (*Guardian, error) { return PostThen(mark, tty, Then{}) }

// PostThen is [Post] of a guardian that becomes another process of this program once
// it has killed what carried its mark.
func PostThen(mark string, tty *Terminal, then Then) (*Guardian, error) {
	if !serves {
		return nil, errors.New("post a guardian: this program is none")
	}
	held, line, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("post a guardian: %w", err)
	}
	defer held.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("post a guardian: %w", err), line.Close())
	}
	defer null.Close()
	env := append([]string{"GOMAXPROCS=1"}, then.Env...) // it does one thing, and must start fast
	if tty != nil {
		if v, err := tty.variable(); err == nil {
			env = append(env, v)
		}
	}
	pid, err := syscall.ForkExec("/proc/self/exe", append([]string{Name, mark}, then.Command...), &syscall.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), held.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("post a guardian: %w", err), line.Close())
	}
	return &Guardian{PID: pid, line: line}, nil
}

// Dismiss ends the guardian without any killing, and reaps it. Nobody else may have
// reaped it before.
func (g *Guardian) Dismiss() {
	_ = syscall.Kill(g.PID, syscall.SIGKILL) // our child, perhaps a zombie: the pid is still its
	for {
		if _, err := syscall.Wait4(g.PID, nil, 0, nil); err != syscall.EINTR {
			break
		}
	}
	g.Leave()
}

// Leave makes the guardian kill what carries its mark, as at the keeper's death.
func (g *Guardian) Leave() { _ = g.line.Close() }
