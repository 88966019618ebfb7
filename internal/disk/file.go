package disk

import (
	"errors"
	"io"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ErrForeign reports a file that heartbeat may not use as its own: a symbolic link, not a regular
// file, another user's, or a file with a second name that others may have made.
var ErrForeign = errors.New("not a file of ours")

// File is an open regular file. It is not safe for concurrent use.
type File struct {
	fd   int
	path string
	info Info

	identity string // empty until [File.Identity] is first called
}

// Info is what stat(2) returned for a file.
type Info struct {
	Size      int64
	Space     int64 // bytes that the file occupies on the disk
	Block     int64 // the file system's allocation unit in bytes
	Mtime     int64 // nanoseconds since 1970, like the two below
	Atime     int64
	Ctime     int64
	Dev, Ino  uint64
	UID, GID  uint32
	Mode      uint32 // the permission bits
	Granted   bool   // an access list lets somebody else write; unknown for an open file
	Links     uint64 // number of names
	IsRegular bool
	IsDir     bool
	IsLink    bool
}

// Path returns the name under which the file was opened.
func (f *File) Path() string { return f.path }

// Info returns the file's inode as of opening or of the last [File.Stat].
func (f *File) Info() Info { return f.info }

// Identity identifies the file itself, independent of its name and content. A replacement has
// another identity, even if the system reuses the inode number.
func (f *File) Identity() string {
	if f.identity == "" {
		f.identity = strconv.FormatUint(f.info.Ino, 10) + "-" + strconv.FormatInt(birth(f), 10)
	}
	return f.identity
}

// Place identifies where on the disk the file's bytes begin, "" if the system does not tell, or has not written them
// out yet. Truncating and refilling a file changes its place; touching or appending does not.
func (f *File) Place() string {
	at, known := place(f.fd)
	if !known {
		return ""
	}
	return strconv.FormatUint(at, 10)
}

// Young reports whether a write right now could give a file the same mtime again. File systems have
// coarse clocks, so such a young mtime does not prove that a file is unchanged.
func Young(mtime int64) bool {
	tick := 20 * time.Millisecond // two ticks of a kernel with 100 ticks a second
	if mtime%1e9 == 0 {
		tick = 2 * time.Second // the file system may store whole seconds only
	}
	return mtime > time.Now().Add(-tick).UnixNano()
}

// Stat reads the inode again.
func (f *File) Stat() (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return f.info, f.fail("stat", err)
	}
	f.info = infoOf(&st)
	return f.info, nil
}

// RedirectOutput redirects the stdout and stderr of this process to the file.
func (f *File) RedirectOutput() error {
	return errors.Join(unix.Dup2(f.fd, unix.Stdout), unix.Dup2(f.fd, unix.Stderr))
}

// ReadAt implements [io.ReaderAt].
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

// WriteAt writes b at off. After an error any part of b may have been written.
func (f *File) WriteAt(b []byte, off int64) error {
	return f.write(Op{Kind: OpWrite, Path: f.path, Offset: off, Data: b}, func(b []byte, done int) (int, error) {
		return unix.Pwrite(f.fd, b, off+int64(done))
	})
}

// Append writes b in a single call to the end of a file that was opened with O_APPEND, and returns
// the offset where b begins. After an error the file may end with a first part of b.
func (f *File) Append(b []byte) (int64, error) {
	written := 0
	err := f.write(Op{Kind: OpWrite, Path: f.path, Offset: -1, Data: b}, func(b []byte, done int) (int, error) {
		if done > 0 {
			return 0, io.ErrShortWrite // another writer may have appended since
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

// Writer writes to a file, each part after the one before.
type Writer struct {
	*File
	Off int64 // where the next part goes
}

// Write implements [io.Writer].
func (w *Writer) Write(b []byte) (int, error) {
	err := w.WriteAt(b, w.Off)
	w.Off += int64(len(b))
	return len(b), err
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
	return f.change("truncate", Op{Kind: OpTruncate, Offset: size}, func() error { return unix.Ftruncate(f.fd, size) })
}

// change announces an operation and then makes the call. An error gives it that name.
func (f *File) change(name string, op Op, call func() error) error {
	op.Path = f.path
	if err := announce(op); err != nil {
		return err
	}
	if err := retry(call); err != nil {
		return f.fail(name, err)
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

// Sync returns once the file's bytes and length survive a power loss. The file's name needs [SyncDir].
func (f *File) Sync() error {
	return f.change("sync", Op{Kind: OpSync}, func() error { return datasync(f.fd) })
}

// SyncDir returns once created, renamed and removed names in dir survive a power loss.
func SyncDir(dir string) error {
	if err := announce(Op{Kind: OpSyncDir, Path: dir}); err != nil {
		return err
	}
	fd, err := open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := retry(func() error { return dirsync(fd) }); err != nil {
		return &fs.PathError{Op: "sync", Path: dir, Err: err}
	}
	return nil
}

// ErrNoHoles reports that the file system or the operating system cannot free space inside a file.
var ErrNoHoles = errors.New("the file system cannot give back the space in the middle of a file")

// PunchHole turns the first n bytes of the file into zeros that take no space. The file's length and the offsets of all
// other bytes stay. Where this is not possible, the error matches [ErrNoHoles] and nothing has changed.
func (f *File) PunchHole(n int64) error {
	return holeError(f.change("punch a hole into", Op{Kind: OpPunch, Length: n}, func() error { return punchHole(f.fd, n) }))
}

// SkipZeros returns the offset of the first non-zero byte at or after off, or size if there is
// none. It does not read holes.
func (f *File) SkipZeros(off, size int64) (int64, error) {
	if off >= size {
		return off, nil
	}
	var first [1]byte
	if _, err := f.ReadAt(first[:], off); err != nil || first[0] != 0 {
		return off, nil // the caller meets the error when it reads at off
	}
	return f.skipRun(off, size)
}

// skipRun is SkipZeros for a zero at off. It is a separate function because its buffer is on the
// stack, which would otherwise grow in every tick.
func (f *File) skipRun(off, size int64) (int64, error) {
	off = nextData(f.fd, off, size)
	chunk := make([]byte, 64<<10)
	for off < size {
		part := chunk[:min(int64(len(chunk)), size-off)]
		n, err := f.ReadAt(part, off)
		if err != nil && err != io.EOF {
			return 0, err
		}
		for i, b := range part[:n] {
			if b != 0 {
				return off + int64(i), nil
			}
		}
		if n < len(part) {
			break // the file has shrunk
		}
		off = max(off+int64(n), nextData(f.fd, off+int64(n), size))
	}
	return size, nil
}
