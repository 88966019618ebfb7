package host

import (
	"strings"

	"golang.org/x/sys/unix"
)

// bootID asks the kernel (proc(5), random/boot_id).
func bootID() string {
	// Read with plain calls: os.ReadFile would start the runtime's poller.
	fd, err := unix.Open("/proc/sys/kernel/random/boot_id", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return unreadBoot()
	}
	defer unix.Close(fd)
	b := make([]byte, 64)
	n, err := unix.Read(fd, b)
	id := strings.TrimSpace(string(b[:max(n, 0)]))
	if err != nil || id == "" {
		return unreadBoot()
	}
	return id
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
