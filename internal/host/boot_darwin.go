package host

import (
	"golang.org/x/sys/unix"
)

// TestOnlyBootID, when set, is what [BootID] returns. Only tests set it.
var TestOnlyBootID string

// BootID identifies this boot of the machine. It changes with a power loss.
func BootID() string {
	if TestOnlyBootID != "" {
		return TestOnlyBootID
	}
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
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
