package host

import "golang.org/x/sys/unix"

// WatchProcess follows a process until it is gone.
func WatchProcess(pid int) *Process { return pollProcess(pid) }

// ProcessStart is when a process started, in microseconds since 1970, which
// together with its number names it for good; 0 when there is no such process.
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

// PIDNamespace is empty: there is one set of process numbers.
func PIDNamespace() string { return "" }
