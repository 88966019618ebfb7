package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// Process is a process that is not a child of this one.
type Process struct {
	died chan struct{}
	gone func() bool
}

// Died is closed once the process is gone.
func (p *Process) Died() <-chan struct{} { return p.died }

// Gone asks the kernel right now. Died may be a moment late.
func (p *Process) Gone() bool { return p.gone() }

// pollProcess is for systems where only the parent can wait for a process.
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
