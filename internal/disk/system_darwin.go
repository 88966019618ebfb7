package disk

import "golang.org/x/sys/unix"

// datasync flushes the drive's cache, which fsync(2) on macOS does not.
func datasync(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
	return err
}

func dirsync(fd int) error { return datasync(fd) }

// quietly is empty: macOS has no flag that leaves a file's atime alone.
const quietly = 0

// birth returns when the file was created, in nanoseconds since 1970, or 0 if that is unknown.
func birth(f *File) int64 {
	var st unix.Stat_t
	if unix.Fstat(f.fd, &st) != nil {
		return 0
	}
	return st.Btim.Nano()
}

// grantsWrite returns false: access lists are not read on this system.
func grantsWrite(string, uint32) bool { return false }

// TakesFile returns nil: exFAT always reports that no inode is free, and other file systems run out of space first.
func TakesFile(string, int64) error { return nil }

func punchHole(int, int64) error { return ErrNoHoles }

func holeError(err error) error { return err }

func nextData(_ int, off, _ int64) int64 { return off }

func place(int) (uint64, bool) { return 0, false }
