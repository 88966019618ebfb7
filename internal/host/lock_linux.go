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
func LockHolder(path string) int { return ReadLocks().Holder(path) }

// Locks are the locks that were held at a moment.
type Locks struct{ list []byte }

// ReadLocks returns the locks that are held now, for those who ask about many files.
func ReadLocks() Locks {
	list, _ := os.ReadFile("/proc/locks") // without it nobody is known to hold one
	return Locks{list}
}

// Holder is [LockHolder] at that moment.
func (l Locks) Holder(path string) int {
	var st unix.Stat_t
	if len(l.list) == 0 || unix.Lstat(path, &st) != nil {
		return 0
	}
	file := fmt.Appendf(nil, "%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range bytes.Lines(l.list) {
		f := bytes.Fields(line) // 1: FLOCK ADVISORY WRITE 708 08:01:131074 0 EOF
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
