package process

import (
	"runtime"
	"syscall"
)

// attributes gives the client a session of its own, and has the kernel kill it when
// this process dies (prctl(2), PR_SET_PDEATHSIG): a guardian may be killed too.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

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
