package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/host/rights"
)

// checkDirectory looks at the inbox's directory.
func checkDirectory(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	dir := filepath.Dir(e.inbox)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Check{fail("directory", quote("mkdir", "-p", "-m", "700", dir), "%s does not exist", dir)}
	case err != nil:
		return []Check{unseen("directory", "let this user search the folders above it", err)}
	case !info.IsDir():
		return []Check{fail("directory", "name an inbox in a directory", "%s is not a directory", dir)}
	}
	if err := unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return []Check{fail("directory", fmt.Sprintf("as its owner: %s, or choose another directory", quote("chmod", "u+rwx", dir)),
			"user %d may not make files in %s (mode %04o, owner %d): %v", e.UID, dir, info.Mode().Perm(), owner(info), err)}
	}
	if of, err := disk.StatDir(dir); err == nil && rights.Others(of) {
		return []Check{warn("directory", quote("chmod", "go-w", dir),
			"others may make and replace files in %s (mode %04o): whoever can do that instructs the agent and forges its state, "+
				"and heartbeat-launch refuses it without --shared", dir, of.Mode)}
	}
	return []Check{ok("directory", "%s belongs to user %d, mode %04o", dir, owner(info), info.Mode().Perm())}
}

func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// links returns how many names a file has.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
