package disk

import "golang.org/x/sys/unix"

// datasync leaves out what reading the bytes back does not need, such as the
// time of change; a grown length is included (fdatasync(2)).
func datasync(fd int) error { return unix.Fdatasync(fd) }

func dirsync(fd int) error { return unix.Fsync(fd) }

// quietly leaves a file's time of access alone, which only its owner may ask for.
const quietly = unix.O_NOATIME

// birth is when the file was made, in nanoseconds since 1970, or 0 where the
// file system does not say.
func birth(f *File) int64 {
	var st unix.Statx_t
	err := unix.Statx(f.fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Size: st.Size, Mtime: st.Mtim.Nano(), Atime: st.Atim.Nano(), Dev: st.Dev, Ino: st.Ino, UID: st.Uid,
		IsRegular: st.Mode&unix.S_IFMT == unix.S_IFREG, IsDir: st.Mode&unix.S_IFMT == unix.S_IFDIR,
	}
}
