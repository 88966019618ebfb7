package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// MaxWhole is the most that [File.ReadAll] takes of a file: more than any file has
// that heartbeat reads whole.
const MaxWhole = 512 << 20

// ErrTooLarge says that a file has more bytes than anything that it may hold.
var ErrTooLarge = errors.New("the file is too large")

// ReadAll reads the whole file as it is now, if it has no more than [MaxWhole]
// bytes. Otherwise the error matches [ErrTooLarge].
func (f *File) ReadAll() ([]byte, error) { return f.ReadUpTo(MaxWhole) }

// ReadUpTo is [File.ReadAll] for another limit.
func (f *File) ReadUpTo(limit int64) ([]byte, error) {
	if err := f.refresh(); err != nil {
		return nil, err
	}
	if f.info.Size > limit {
		return nil, f.tooLarge(f.info.Size, limit)
	}
	b := make([]byte, f.info.Size)
	n, err := f.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

func (f *File) tooLarge(size, limit int64) error {
	return f.fail("read", fmt.Errorf("%w: it has %d bytes, and may have no more than %d bytes", ErrTooLarge, size, limit))
}

// ReadFile reads a file that belongs to the user, such as settings: links are
// followed, and any owner will do. It never waits for a FIFO's writer, and takes
// no more than limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	return readWhole(path, limit, func() (*File, error) { return openAny(path, unix.O_RDONLY) })
}

// ReadState is [ReadFile] for a state file, as [OpenRead] opens it.
func ReadState(path string, limit int64) ([]byte, error) {
	return readWhole(path, limit, func() (*File, error) { return OpenRead(path) })
}

// ReadGiven is [ReadFile] for a file that a person names on a command line: it may be
// a pipe, and then its writer is waited for.
func ReadGiven(path string, limit int64) (b []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, limit)}
	}
	return b, err
}

func readWhole(path string, limit int64, open func() (*File, error)) ([]byte, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	b, err := f.ReadUpTo(limit)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return b, nil
}
