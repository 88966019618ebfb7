package disk

import "golang.org/x/sys/unix"

// datasync asks the drive itself, which fsync(2) on macOS does not.
func datasync(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
	return err
}

func dirsync(fd int) error { return datasync(fd) }

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Size: st.Size, Mtime: st.Mtim.Nano(), Atime: st.Atim.Nano(), Dev: uint64(st.Dev), Ino: st.Ino, UID: st.Uid,
		IsRegular: st.Mode&unix.S_IFMT == unix.S_IFREG, IsDir: st.Mode&unix.S_IFMT == unix.S_IFDIR,
	}
}
