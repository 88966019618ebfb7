package host

import "golang.org/x/sys/unix"

// parent is the process that a process is a child of, 0 if it has ended.
func parent(pid int) int {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return int(p.Eproc.Ppid)
}
