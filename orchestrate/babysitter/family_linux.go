package babysitter

import "syscall"

// familyAttr makes a program the leader of a process group, and has the kernel kill it when
// the thread that started it ends.
func familyAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
