package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/natefinch/atomic"
	"golang.org/x/sys/unix"
)

// Remove removes a name. A missing name is no error.
func Remove(path string) error {
	if err := announce(Op{Kind: OpRemove, Path: path}); err != nil {
		return err
	}
	if err := retry(func() error { return unix.Unlink(path) }); err != nil && err != unix.ENOENT {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

// Exists reports whether path names something, without following a link.
func Exists(path string) (bool, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if err == unix.ENOENT {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return true, nil
}

// Create creates an empty state file unless it exists.
func Create(path string) error {
	f, _, err := OpenWrite(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// MakeDir creates a directory with mode 0700. The directory survives a power loss.
func MakeDir(path string) error {
	if err := retry(func() error { return unix.Mkdir(path, 0o700) }); err != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return SyncDir(filepath.Dir(path))
}

// Touch creates an empty file, or sets the times of an existing one to now.
func Touch(path string) error {
	f, created, err := OpenWrite(path)
	if err != nil {
		return err
	}
	if !created {
		err = f.Touch()
	}
	return errors.Join(err, f.Close())
}

// Touch sets atime and mtime to the same moment, now.
func (f *File) Touch() error {
	if err := announce(Op{Kind: OpTouch, Path: f.path}); err != nil {
		return err
	}
	now := unix.NsecToTimeval(time.Now().UnixNano())
	if err := unix.Futimes(f.fd, []unix.Timeval{now, now}); err != nil {
		return f.fail("touch", err)
	}
	return nil
}

// Publish replaces the content of path through a temporary file beside it. Readers see the old
// content or the new, never a part. If durable is set, the new content survives a power loss once
// Publish has returned. Otherwise a kill still leaves the old or the new content, but a power loss
// may leave anything. Publishers of one path must exclude each other.
func Publish(path string, data []byte, durable bool) error {
	tmp := path + ".tmp"
	if err := Remove(tmp); err != nil {
		return err
	}
	f, err := create(tmp)
	if err != nil {
		return err
	}
	err = f.WriteAt(data, 0)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = rename(tmp, path)
	}
	if err != nil {
		_ = Remove(tmp) // best effort: the next Publish removes it
		return err
	}
	if durable {
		return SyncDir(filepath.Dir(path))
	}
	return nil
}

// Rename replaces the file at to by the file at from, in the same directory. The change survives a
// power loss once Rename has returned.
func Rename(from, to string) error {
	if err := rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

func rename(from, to string) error {
	if err := announce(Op{Kind: OpRename, Path: from, To: to}); err != nil {
		return err
	}
	return atomic.ReplaceFile(from, to)
}

// UserState returns the path of this user's folder for state that belongs to no inbox:
// ${XDG_STATE_HOME:-~/.local/state}/heartbeat/NAME. The folder may not exist.
func UserState(name string) (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the XDG specification ignores a relative path
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%w: set XDG_STATE_HOME", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "heartbeat", name), nil
}

// Names returns up to limit names of a directory, unordered. more reports that there are others. A
// link in place of the directory is not followed.
func Names(dir string, limit int) (names []string, more bool, err error) {
	fd, err := open(dir, unix.O_RDONLY|unix.O_DIRECTORY|stateFlags, 0)
	if err != nil {
		return nil, false, err
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close() // it was only read
	names, err = f.Readdirnames(limit + 1)
	if errors.Is(err, io.EOF) {
		err = nil // an empty directory
	}
	if len(names) > limit {
		return names[:limit], true, err
	}
	return names, false, err
}
