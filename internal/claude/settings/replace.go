package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/natefinch/atomic"
	"golang.org/x/sys/unix"
)

// write replaces the file at path by a new one with the same owner, group and mode.
func write(path string, content []byte) (err error) {
	mode, uid, gid := fs.FileMode(0o600), -1, -1
	if info, err := os.Lstat(path); err == nil {
		mode = info.Mode().Perm()
		uid, gid = ownerOf(info)
	} else if info, err := os.Stat(filepath.Dir(path)); err == nil && os.Geteuid() == 0 {
		uid, gid = ownerOf(info)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, give(f, uid, gid), f.Chmod(mode), f.Sync())
	if err = errors.Join(err, f.Close()); err == nil {
		err = atomic.ReplaceFile(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// give changes a file's owner and group. A user who is not root can only give it to one of their groups; otherwise the
// file stays theirs.
func give(f *os.File, uid, gid int) error {
	if uid < 0 {
		return nil
	}
	if os.Geteuid() == 0 {
		return f.Chown(uid, gid)
	}
	_ = f.Chown(-1, gid) // fails if it is not one of the user's groups
	return nil
}

func ownerOf(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return -1, -1
}

// makeParent makes the missing directories above path and returns how many it made. Root gives them to the owner of the
// directory that they are made in.
func makeParent(path string) (made int, err error) {
	var missing []string
	above := filepath.Dir(path)
	for ; above != filepath.Dir(above); above = filepath.Dir(above) {
		if _, err := os.Stat(above); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, above)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil || os.Geteuid() != 0 {
		return len(missing), err
	}
	info, err := os.Stat(above)
	if err != nil {
		return len(missing), err
	}
	uid, gid := ownerOf(info)
	for _, dir := range missing {
		if err := giveDirectory(dir, uid, gid); err != nil {
			return len(missing), err
		}
	}
	return len(missing), nil
}

func giveDirectory(path string, uid, gid int) error {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(give(dir, uid, gid), dir.Close())
}
