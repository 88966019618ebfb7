package process

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// run starts a program from a thread that lives as long as the program: with
// Pdeathsig, the kernel kills it when the thread that started it ends. bury is called
// with its status at the end.
func run(path string, command []string, attr *syscall.ProcAttr, bury func(syscall.WaitStatus)) (int, error) {
	type start struct {
		pid int
		err error
	}
	started := make(chan start)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		pid, status, err := children.start(func() (int, error) { return syscall.ForkExec(path, command, attr) })
		started <- start{pid, err}
		if err == nil {
			bury(<-status)
		}
	}()
	s := <-started
	return s.pid, s.err
}

// Adopt makes the orphans of clients children of this process, so that they are found
// and reaped. From then on this process must start no other children that it waits
// for itself. Call it once, before the first client starts.
func Adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // since Linux 3.4: cannot fail
	children.mu.Lock()
	children.adopts = true
	children.mu.Unlock()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go children.reap(signals)
}
