package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// MaxWhole is the size in bytes of the largest file that is read whole. Real files stay far below.
const MaxWhole = 512 << 20

// ErrTooLarge reports a file that is larger than its valid content can be.
var ErrTooLarge = errors.New("the file is too large")

// ReadUpTo reads the whole file as it is now. The error matches [ErrTooLarge] if that is more than limit bytes.
func (f *File) ReadUpTo(limit int64) ([]byte, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size > limit:
		return nil, f.fail("read", fmt.Errorf("%w: it has %d bytes, and may have no more than %d bytes", ErrTooLarge, info.Size, limit))
	}
	b := make([]byte, info.Size)
	n, err := f.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

// ReadFile reads a file that belongs to the user, such as settings. It follows links and accepts any owner. It never
// waits for a FIFO's writer, and refuses more than limit bytes with [ErrTooLarge].
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := openAny(path, unix.O_RDONLY)
	return f.whole(limit, err)
}

// ReadState is [ReadFile] for a state file: see [OpenRead].
func ReadState(path string, limit int64) ([]byte, error) {
	f, err := OpenRead(path)
	return f.whole(limit, err)
}

// ReadGiven is [ReadFile] for a file that a person names on the command line. For a pipe it waits for the writer.
func ReadGiven(path string, limit int64) (b []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return readBounded(f, path, limit)
}

// readBounded reads a stream of unknown length. path is for the error.
func readBounded(r io.Reader, path string, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, limit)}
	}
	return b, err
}

// ReadBelow is [ReadFile] for a file that an agent names. The file must be regular and below one of
// the directories, and no link on the way may lead out of it.
func ReadBelow(path string, limit int64, dirs ...string) (b []byte, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	names := []string{abs}
	if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		names = append(names, filepath.Join(real, filepath.Base(abs))) // a directory may have two names
	}
	for _, dir := range dirs {
		for _, name := range names {
			if below, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(below) {
				return readIn(dir, below, limit)
			}
		}
	}
	return nil, fmt.Errorf("read %s: an agent hands over only files below %s: %w", path, strings.Join(dirs, " or "), fs.ErrPermission)
}

func readIn(dir, name string, limit int64) (b []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: it is not a regular file", path)
	}
	return readBounded(f, path, limit)
}

// whole reads and closes a file that was just opened, if it could be.
func (f *File) whole(limit int64, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	b, err := f.ReadUpTo(limit)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return b, nil
}
