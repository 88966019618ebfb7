package check

import "syscall"

// attributes give a check a process group of its own, and end it with the hook that runs it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
