package disk

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// StatDir is what a directory's inode says; links to it are followed.
func StatDir(path string) (Info, error) {
	info, err := statAt(path, unix.Stat)
	if err == nil && !info.IsDir {
		err = fmt.Errorf("%s is not a directory", path)
	}
	return info, err
}

// StatFile is what the inode of any file says; links to it are followed.
func StatFile(path string) (Info, error) { return statAt(path, unix.Stat) }

// StatName is [StatFile] of the name itself: a link is not followed.
func StatName(path string) (Info, error) { return statAt(path, unix.Lstat) }

func statAt(path string, stat func(string, *unix.Stat_t) error) (Info, error) {
	var st unix.Stat_t
	if err := retry(func() error { return stat(path, &st) }); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return infoOf(&st), nil
}

// Sticky says of a directory that a name in it can only be changed by its owner.
func (i Info) Sticky() bool { return i.Mode&unix.S_ISVTX != 0 }
