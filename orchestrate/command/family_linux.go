package command

import (
	"runtime"
	"syscall"
)

// family is a process group of its own, whose leader the kernel kills when this
// process dies.
func family() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// onOneThread keeps the thread alive that started the command: the kernel takes
// that thread's end for the parent's death.
func onOneThread() (release func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
