package host

import "golang.org/x/sys/unix"

// Name is what a process calls itself, at most 16 bytes of it, "" if it has ended.
func Name(pid int) string {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(p.Proc.P_comm[:])
}

// WorkingDir is the directory that a process works in, "" if that cannot be known, as here.
func WorkingDir(int) string { return "" }
