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

// Remove removes a name. It is no error if the name is not there.
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

// Create makes an empty state file unless there is one.
func Create(path string) error {
	f, _, err := OpenWrite(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// MakeDir makes a directory for its owner alone. It survives a power loss.
func MakeDir(path string) error {
	if err := retry(func() error { return unix.Mkdir(path, 0o700) }); err != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return SyncDir(filepath.Dir(path))
}

// Touch makes an empty file, or sets an existing one's times to now.
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

// Touch sets the times of access and change to the same moment, now.
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

// Publish replaces the content of path, by way of a temporary file beside it:
// readers see the old content or the new, never a part. If durable is set, the new
// content survives a power loss once Publish has returned. If not, a kill still
// leaves the old or the new content, but a power loss may leave anything. Publishers
// of one path must exclude each other.
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

// Rename replaces the file at to, in the same directory, by the one at from. When
// it has returned, the change survives a power loss.
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

// UserState is a folder of this user's for what belongs to no inbox, in
// ${XDG_STATE_HOME:-~/.local/state}/heartbeat. It need not be there.
func UserState(name string) (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // as the XDG specification says of a relative one
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%w: set XDG_STATE_HOME", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "heartbeat", name), nil
}

// Names lists at most limit names of a directory, in no order; more says that there
// are others. A link in place of the directory is not followed.
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
