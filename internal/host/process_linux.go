package host

import "golang.org/x/sys/unix"

// awaitDeath blocks until the process is gone. It holds on to this very process
// (pidfd_open(2)), so another that gets its number later is not mistaken for it.
func awaitDeath(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch err {
	case nil:
	case unix.ESRCH:
		return
	default:
		pollDeath(pid)
		return
	}
	defer unix.Close(fd)
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err != unix.EINTR {
			return
		}
	}
}
