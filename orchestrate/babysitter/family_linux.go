package babysitter

import "syscall"

// familyAttr makes a program the first of a family, which dies with who started it.
func familyAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
