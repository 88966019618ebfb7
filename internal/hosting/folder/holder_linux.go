package folder

import (
	"os"
	"path/filepath"
	"strconv"
)

// MayHold reports whether a process has the session's lock file open, as the lock's
// holder has. It is asked before a process is signalled that only the record names,
// which the session's tools may have forged.
func (f Folder) MayHold(pid int) bool {
	lock, err := os.Lstat(f.LockPath())
	if err != nil {
		return false
	}
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	names, _ := os.ReadDir(dir) // no names if it is another user's
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name.Name())); err == nil && os.SameFile(info, lock) {
			return true
		}
	}
	return false
}
