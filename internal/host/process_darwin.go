package host

import "golang.org/x/sys/unix"

// WatchProcess follows a process until it is gone.
func WatchProcess(pid int) *Process { return pollProcess(pid) }

// ProcessStart is when a process started, in microseconds since 1970, or 0 if there
// is no such process. Together with the pid it identifies the process for good.
func ProcessStart(pid int) int64 {
	if pid <= 0 {
		return 0
	}
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	start := p.Proc.P_starttime
	return start.Sec*1e6 + int64(start.Usec)
}

// PIDNamespace is empty: macOS has only one.
func PIDNamespace() string { return "" }
