package deadletter

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// runsIn reports whether pgid is a process group whose leader runs in dir, as the
// babysitter of a session in dir does. An agent can start such a process as well, but
// then it only gets its own process signalled.
func runsIn(pgid int, dir string) bool {
	if pgid <= 1 {
		return false
	}
	if group, err := unix.Getpgid(pgid); err != nil || group != pgid {
		return false
	}
	at, err := os.Readlink("/proc/" + strconv.Itoa(pgid) + "/cwd")
	if err != nil {
		return false
	}
	dir, err = filepath.EvalSymlinks(dir)
	return err == nil && at == dir
}
