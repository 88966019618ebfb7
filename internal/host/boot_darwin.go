package host

import "golang.org/x/sys/unix"

func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil || id == "" {
		return unreadBoot()
	}
	return id
}

// SinceBoot is a clock in nanoseconds that is never set back. Compare it only
// within one boot.
func SinceBoot() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
