package host

import "golang.org/x/sys/unix"

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
