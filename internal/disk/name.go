package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/natefinch/atomic"
	"golang.org/x/sys/unix"
)

// Remove takes a name away. A name that is not there is no error.
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

// Create makes an empty file of ours where there is none.
func Create(path string) error {
	f, _, err := OpenWrite(path)
	if err != nil {
		return err
	}
	return f.Close()
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

// Touch sets the times of access and change to one and the same now.
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

// Publish makes data the whole content of path by way of a temporary file
// beside it: a reader finds the old content or the new, never a part. With
// durable it returns once a power loss would leave the new; without, a power
// loss may leave anything, and a kill the old or the new. Publishers of one path
// must exclude each other.
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

// Rename has a file take the place of another in its directory. It returns once a
// power loss would leave that.
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
