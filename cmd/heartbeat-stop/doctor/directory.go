package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const othersWrite = 0o002

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
	if info.Mode().Perm()&othersWrite != 0 {
		return []Check{warn("directory", quote("chmod", "o-w", dir),
			"anybody may make files in %s (mode %04o): whoever can write to the inbox can instruct the agent", dir, info.Mode().Perm())}
	}
	return []Check{ok("directory", "%s belongs to user %d, mode %04o", dir, owner(info), info.Mode().Perm())}
}

func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
