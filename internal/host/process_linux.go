package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// WatchProcess holds on to this very process (pidfd_open(2)), so that another
// that gets its number later is not mistaken for it. It does so until the
// process is gone.
func WatchProcess(pid int) *Process {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil && err != unix.ESRCH {
		return pollProcess(pid)
	}
	p := &Process{died: make(chan struct{}), gone: func() bool { return err != nil || ended(fd, 0) }}
	go func() {
		defer close(p.died)
		for !p.gone() && !ended(fd, -1) {
		}
	}()
	return p
}

// ended waits that many milliseconds at the most, and without end for -1.
func ended(fd, wait int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wait)
	return err == nil && n > 0
}

// ProcessStart is when a process started, in clock ticks since boot (proc(5),
// stat), which together with its number names it for good; 0 when there is no
// such process.
func ProcessStart(pid int) int64 {
	if pid <= 0 {
		return 0
	}
	e, _ := entry(pid)
	return e.Start
}

// PIDNamespace names the set of processes among which numbers are this one's
// (pid_namespaces(7)); it is empty where the system does not say.
func PIDNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}
