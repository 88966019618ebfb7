package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Bounds on what is read whole. The client's account file grows with every
// project, and a journal record holds a line.
const (
	maxSettings = 16 << 20
	maxAccount  = 256 << 20
	maxState    = 256 << 20
)

// readFile reads a regular file of at most limit bytes. Opening a FIFO would
// wait for its writer.
func readFile(path string, limit int64) ([]byte, error) {
	return readWith(path, 0, limit)
}

// readState is readFile for a file whose links the hook does not follow.
func readState(path string) ([]byte, error) {
	return readWith(path, unix.O_NOFOLLOW, maxState)
}

func readWith(path string, flags int, limit int64) (content []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	}
	content, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d bytes", limit)}
	}
	return content, err
}
