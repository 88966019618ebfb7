package guardian

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Guardian is one that was posted. It is a child of this process.
type Guardian struct {
	PID  int
	line *os.File // nothing is ever written to it: the kernel closes it at any death
}

// keeping is where a guardian finds the other end of the line.
const keeping = 3

// Post starts a guardian. It has nothing of its keeper's: neither the terminal, nor
// its streams, nor its working directory. A terminal, nil for none, it restores by
// its name.
func Post(mark string, tty *Terminal) (*Guardian, error) {
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
	env := []string{"GOMAXPROCS=1"} // it has one thing to do, and is to be ready soon
	if tty != nil {
		if v, err := tty.variable(); err == nil {
			env = append(env, v)
		}
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{Name, mark}, &syscall.ProcAttr{
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

// Dismiss ends a guardian that is still there, and waits for it: nobody is left to
// be killed. The caller must know that nobody else has waited for it.
func (g *Guardian) Dismiss() {
	_ = syscall.Kill(g.PID, syscall.SIGKILL) // it is a child, if only a zombie
	for {
		if _, err := syscall.Wait4(g.PID, nil, 0, nil); err != syscall.EINTR {
			break
		}
	}
	g.Leave()
}

// Leave has the guardian do its duty, if it is still there.
func (g *Guardian) Leave() { _ = g.line.Close() }
