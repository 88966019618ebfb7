package disk

import "golang.org/x/sys/unix"

// datasync leaves out what reading the bytes back does not need, such as the
// time of change; a grown length is included (fdatasync(2)).
func datasync(fd int) error { return unix.Fdatasync(fd) }

func dirsync(fd int) error { return unix.Fsync(fd) }

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Size: st.Size, Mtime: st.Mtim.Nano(), Atime: st.Atim.Nano(), Dev: st.Dev, Ino: st.Ino, UID: st.Uid,
		IsRegular: st.Mode&unix.S_IFMT == unix.S_IFREG, IsDir: st.Mode&unix.S_IFMT == unix.S_IFDIR,
	}
}
