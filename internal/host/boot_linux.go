package host

import (
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// TestOnlyBootID, when set, is what [BootID] returns. Only tests set it.
var TestOnlyBootID string

var bootID = sync.OnceValue(func() string {
	// Read with plain calls: os.ReadFile would start the runtime's poller.
	fd, err := unix.Open("/proc/sys/kernel/random/boot_id", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	b := make([]byte, 64)
	n, err := unix.Read(fd, b)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b[:n]))
})

// BootID identifies this boot of the machine. It changes with a power loss. It is
// empty if the kernel does not say (proc(5), random/boot_id).
func BootID() string {
	if TestOnlyBootID != "" {
		return TestOnlyBootID
	}
	return bootID()
}

// SinceBoot is a clock in nanoseconds that counts from boot and is never set back
// (clock_gettime(2), CLOCK_BOOTTIME). Compare it only within one boot.
func SinceBoot() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
