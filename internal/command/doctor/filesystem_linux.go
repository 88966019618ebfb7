package doctor

import "golang.org/x/sys/unix"

func statFileSystem(dir string) (fileSystem, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fileSystem{}, err
	}
	// The types of the fields differ between architectures.
	f := fileSystem{
		readOnly: int64(st.Flags)&unix.ST_RDONLY != 0,
		free:     uint64(st.Bavail) * uint64(st.Bsize),
		nodes:    uint64(st.Files), freeNodes: uint64(st.Ffree),
	}
	f.kind, f.why = judgeKind(uint32(st.Type))
	return f, nil
}

// judgeKind names the kinds of file system that guarantee less than a local disk.
func judgeKind(magic uint32) (kind, why string) {
	const remote = "where a lock and a sync promise less than on a local disk"
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "NFS", remote
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB", remote
	case unix.FUSE_SUPER_MAGIC:
		return "FUSE", remote
	case unix.V9FS_MAGIC:
		return "9p", remote
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph", remote
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS", remote
	case unix.CODA_SUPER_MAGIC:
		return "Coda", remote
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return "memory (tmpfs)", "which a restart empties: queue, results and dead letters are gone then"
	}
	return "", ""
}
