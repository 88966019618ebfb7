package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// WatchProcess follows a process until it is gone. It uses pidfd_open(2), so that
// another process that gets the pid later is not mistaken for it.
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

// ended waits at most wait milliseconds for the process to end, or for ever if wait
// is -1.
func ended(fd, wait int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wait)
	return err == nil && n > 0
}

// ProcessStart is when a process started, in clock ticks since boot (proc(5),
// stat), or 0 if there is no such process. Together with the pid and the boot it
// identifies the process for good.
func ProcessStart(pid int) int64 {
	if pid <= 0 {
		return 0
	}
	e, _ := entry(pid)
	return e.Start
}

// PIDNamespace identifies the namespace in which this process's pids are valid
// (pid_namespaces(7)). It is empty if the system does not say.
func PIDNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}
