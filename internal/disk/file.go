package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrForeign says that a file is not one that heartbeat may use as its own: a
// symbolic link, something other than a regular file, or another user's.
var ErrForeign = errors.New("not a file of ours")

// File is an open regular file. It is not safe for concurrent use.
type File struct {
	fd   int
	path string
	info Info
}

// Info is what a file's inode said.
type Info struct {
	Size      int64
	Mtime     int64 // nanoseconds since 1970
	Atime     int64
	Dev, Ino  uint64
	UID       uint32
	IsRegular bool
	IsDir     bool
}

const stateFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

// OpenRead opens a state file for reading. A file that is not there gives an
// error that matches [fs.ErrNotExist]; one that is not ours, [ErrForeign].
func OpenRead(path string) (*File, error) {
	return openState(path, unix.O_RDONLY)
}

// OpenExisting opens a state file for reading and writing, as [OpenRead] does.
func OpenExisting(path string) (*File, error) {
	return openState(path, unix.O_RDWR)
}

// OpenWrite opens a state file for reading and writing, and creates it with
// mode 0600 where it is missing; created says which. A name is only durable
// after [SyncDir], and one that was there may lack that: whoever made it may have
// been killed before.
func OpenWrite(path string) (f *File, created bool, err error) {
	for {
		f, err = openState(path, unix.O_RDWR)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, false, err
		}
		f, err = create(path)
		if !errors.Is(err, fs.ErrExist) {
			return f, err == nil, err
		}
	}
}

// OpenAppend opens a user's file (see [OpenForeign]) for [File.Append] and for
// reading, and creates it with mode 0600 where it is missing.
func OpenAppend(path string) (f *File, created bool, err error) {
	for {
		f, err = OpenForeign(path, unix.O_RDWR|unix.O_APPEND)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, false, err
		}
		f, err = create(path)
		if errors.Is(err, fs.ErrExist) {
			if target, err := os.Readlink(path); err == nil {
				return nil, false, fmt.Errorf("open %s: it is a symbolic link to %s, which is not there", path, target)
			}
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if err := f.Close(); err != nil {
			return nil, true, err
		}
		f, err = OpenForeign(path, unix.O_RDWR|unix.O_APPEND)
		return f, true, err
	}
}

// OpenForeign opens a file that belongs to the user rather than to heartbeat:
// links are followed, and any owner will do. It still must be a regular file.
// flags are those of open(2), beside the ones that keep it from blocking.
func OpenForeign(path string, flags int) (*File, error) {
	fd, err := open(path, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	f := &File{fd: fd, path: path}
	if err := f.refresh(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	switch {
	case f.info.IsDir:
		return nil, errors.Join(fmt.Errorf("open %s: it is a directory, not a file", path), f.Close())
	case !f.info.IsRegular:
		return nil, errors.Join(fmt.Errorf("open %s: it is not a regular file", path), f.Close())
	}
	return f, nil
}

func openState(path string, flags int) (*File, error) {
	fd, err := open(path, flags|stateFlags, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("open %s: it is a symbolic link, which is never followed for a state file: remove it: %w", path, ErrForeign)
	}
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, notRegular(path)
	}
	if err != nil {
		return nil, err
	}
	f := &File{fd: fd, path: path}
	if err := f.mustBeOurs(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) mustBeOurs() error {
	if err := f.refresh(); err != nil {
		return err
	}
	if !f.info.IsRegular {
		return notRegular(f.path)
	}
	me := uint32(os.Geteuid())
	if me != 0 && f.info.UID != me && f.info.UID != 0 {
		return fmt.Errorf("open %s: it belongs to user %d, and this is user %d: %w", f.path, f.info.UID, me, ErrForeign)
	}
	return nil
}

func notRegular(path string) error {
	return fmt.Errorf("open %s: it is not a regular file: remove it: %w", path, ErrForeign)
}

// create makes a file that must not be there yet. Root, acting in somebody's
// directory, leaves the file to that user, who could not read it otherwise.
func create(path string) (*File, error) {
	if err := announce(Op{Kind: OpCreate, Path: path}); err != nil {
		return nil, err
	}
	fd, err := open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|stateFlags, 0o600)
	if err != nil {
		return nil, err
	}
	f := &File{fd: fd, path: path}
	if os.Geteuid() == 0 {
		var dir unix.Stat_t
		if unix.Stat(filepath.Dir(path), &dir) == nil && dir.Uid != 0 {
			if err := unix.Fchown(fd, int(dir.Uid), int(dir.Gid)); err != nil {
				return nil, errors.Join(&fs.PathError{Op: "chown", Path: path, Err: err}, f.Close())
			}
		}
	}
	if err := f.refresh(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func open(path string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Open(path, flags, mode)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return fd, nil
	}
}

// Path is the name that the file was opened under.
func (f *File) Path() string { return f.path }

// Info is what the inode said when the file was opened.
func (f *File) Info() Info { return f.info }

// Stat asks the inode again.
func (f *File) Stat() (Info, error) {
	err := f.refresh()
	return f.info, err
}

func (f *File) refresh() error {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return f.fail("stat", err)
	}
	f.info = infoOf(&st)
	return nil
}

// ReadAt reads len(b) bytes at off, as [io.ReaderAt] asks.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		m, err := unix.Pread(f.fd, b[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, f.fail("read", err)
		}
		if m == 0 {
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}

// ReadAll reads the whole file as it is now.
func (f *File) ReadAll() ([]byte, error) {
	if err := f.refresh(); err != nil {
		return nil, err
	}
	b := make([]byte, f.info.Size)
	n, err := f.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

// WriteAt writes b at off. After an error any part of b may have been written.
func (f *File) WriteAt(b []byte, off int64) error {
	return f.write(Op{Kind: OpWrite, Path: f.path, Offset: off, Data: b}, func(b []byte, done int) (int, error) {
		return unix.Pwrite(f.fd, b, off+int64(done))
	})
}

// Append writes b with one call at the end of a file that was opened with
// O_APPEND, wherever that is by now, and returns the offset it landed at. After
// an error a first part of b may be there.
func (f *File) Append(b []byte) (int64, error) {
	written := 0
	err := f.write(Op{Kind: OpWrite, Path: f.path, Offset: -1, Data: b}, func(b []byte, done int) (int, error) {
		if done > 0 {
			return 0, io.ErrShortWrite // somebody else's bytes may be at the end by now
		}
		n, err := unix.Write(f.fd, b)
		written = max(n, 0)
		return n, err
	})
	end, seekErr := unix.Seek(f.fd, 0, io.SeekCurrent)
	if err == nil && seekErr != nil {
		err = f.fail("seek", seekErr)
	}
	return end - int64(written), err
}

func (f *File) write(op Op, call func(b []byte, done int) (int, error)) error {
	b := op.Data
	err := announce(op)
	torn, isTorn := err.(*Torn)
	if isTorn {
		b = b[:min(torn.N, len(b))]
	} else if err != nil {
		return err
	}
	for done := 0; done < len(b); {
		n, err := call(b[done:], done)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return f.fail("write", err)
		}
		done += n
	}
	if isTorn {
		return torn.Then()
	}
	return nil
}

// Truncate sets the file's length.
func (f *File) Truncate(size int64) error {
	if err := announce(Op{Kind: OpTruncate, Path: f.path, Offset: size}); err != nil {
		return err
	}
	if err := retry(func() error { return unix.Ftruncate(f.fd, size) }); err != nil {
		return f.fail("truncate", err)
	}
	return nil
}

func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// Close closes the descriptor.
func (f *File) Close() error {
	if f == nil || f.fd < 0 {
		return nil
	}
	fd := f.fd
	f.fd = -1
	if err := unix.Close(fd); err != nil {
		return f.fail("close", err)
	}
	return nil
}

func (f *File) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.path, Err: err}
}
