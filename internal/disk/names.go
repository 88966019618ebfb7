package disk

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

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
