package host

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// LockHolder returns the pid of the process that holds a flock(2) on the file, -1
// if the holder has no pid here, and 0 if nobody holds it. It reads proc_locks(5)
// and does not try the lock.
func LockHolder(path string) int {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	file := fmt.Appendf(nil, "%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for l := range bytes.Lines(locks) {
		f := bytes.Fields(l) // 1: FLOCK ADVISORY WRITE 708 08:01:131074 0 EOF
		if len(f) < 6 || !bytes.Equal(f[1], []byte("FLOCK")) || !bytes.Equal(f[5], file) {
			continue
		}
		if pid, err := strconv.Atoi(string(f[4])); err == nil && pid > 0 {
			return pid
		}
		return -1
	}
	return 0
}
