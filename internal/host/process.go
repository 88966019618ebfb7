package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// Process is a process that somebody else started.
type Process struct {
	died chan struct{}
	gone func() bool
}

// Died is closed once the process is gone.
func (p *Process) Died() <-chan struct{} { return p.died }

// Gone asks the kernel now, where Died may be a moment late.
func (p *Process) Gone() bool { return p.gone() }

// pollProcess is for systems where a process cannot be waited for by others.
func pollProcess(pid int) *Process {
	p := &Process{died: make(chan struct{}), gone: func() bool { return unix.Kill(pid, 0) == unix.ESRCH }}
	go func() {
		defer close(p.died)
		for !p.gone() {
			time.Sleep(time.Second)
		}
	}()
	return p
}
