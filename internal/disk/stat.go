package disk

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// StatDir returns a directory's inode. It follows links.
func StatDir(path string) (Info, error) {
	info, err := statAt(path, unix.Stat)
	if err == nil && !info.IsDir {
		err = fmt.Errorf("%s is not a directory", path)
	}
	return info, err
}

// StatFile returns the inode of any kind of file. It follows links.
func StatFile(path string) (Info, error) { return statAt(path, unix.Stat) }

// StatName is [StatFile] without following links.
func StatName(path string) (Info, error) { return statAt(path, unix.Lstat) }

func statAt(path string, stat func(string, *unix.Stat_t) error) (Info, error) {
	var st unix.Stat_t
	if err := retry(func() error { return stat(path, &st) }); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return infoOf(&st), nil
}

// Sticky reports whether a name in this directory can only be changed by its owner.
func (i Info) Sticky() bool { return i.Mode&unix.S_ISVTX != 0 }
