package command

import (
	"runtime"
	"syscall"
)

// family makes a command the leader of a process group, and has the kernel kill it when this
// process dies.
func family() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// onOneThread keeps the thread that starts the command alive: the kernel takes the end of
// that thread for the death of the parent.
func onOneThread() (release func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
