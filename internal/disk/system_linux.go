package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// datasync syncs the bytes and a new length, but not the mtime (fdatasync(2)).
func datasync(fd int) error { return unix.Fdatasync(fd) }

func dirsync(fd int) error { return unix.Fsync(fd) }

// quietly leaves a file's atime alone. Only the file's owner may use it.
const quietly = unix.O_NOATIME

// birth returns when the file was created, in nanoseconds since 1970, or 0 if the file system does not record it.
func birth(f *File) int64 {
	var st unix.Statx_t
	err := unix.Statx(f.fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}

// grantsWrite reports whether a file's access list lets somebody else, or a named group, write. Each entry of the list
// has 8 bytes: its tag in the first, its rights in the third, and whom it names in the last four.
func grantsWrite(path string, owner uint32) bool {
	const user, group, write = 0x02, 0x08, 0x02
	var list [4096]byte
	n, err := unix.Getxattr(path, "system.posix_acl_access", list[:])
	for at := 4; err == nil && at+8 <= n; at += 8 {
		id := binary.LittleEndian.Uint32(list[at+4:])
		if tag := list[at]; (tag == user && id != owner && id != 0 || tag == group) && list[at+2]&write != 0 {
			return true
		}
	}
	return errors.Is(err, unix.ERANGE)
}

// TakesFile returns an error if a folder certainly takes no file of n bytes, for example because a quota is used up. It
// finds out by creating a file without a name.
func TakesFile(dir string, n int64) error {
	fd, err := open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		err = errors.Join(unix.Fallocate(fd, 0, 0, n), unix.Close(fd))
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err
	}
	return nil
}

func punchHole(fd int, n int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, n)
}

func holeError(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %w", ErrNoHoles, err)
	}
	return err
}

// nextData returns the offset of the next bytes outside a hole, or size.
func nextData(fd int, off, size int64) int64 {
	at, err := unix.Seek(fd, off, unix.SEEK_DATA)
	switch err {
	case nil:
		return at
	case unix.ENXIO:
		return size
	}
	return off
}

// place returns the position of the file's first extent (FS_IOC_FIEMAP, linux/fiemap.h).
func place(fd int) (at uint64, known bool) {
	const (
		request  = 0xC020660B
		unplaced = 0x0002 | 0x0004 | 0x0008 | 0x0200 // unknown, delayed, encoded, inline
	)
	var m struct {
		start, length                  uint64
		flags, mapped, count, reserved uint32
		extent                         struct {
			logical, physical, length uint64
			reserved                  [2]uint64
			flags                     uint32
			reserved2                 [3]uint32
		}
	}
	m.length, m.count = 1<<63-1, 1
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&m)))
	return m.extent.physical, errno == 0 && m.mapped == 1 && m.extent.flags&unplaced == 0
}
