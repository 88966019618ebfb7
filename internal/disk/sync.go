package disk

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// Sync returns when the file's bytes and length survive a power loss. The file's
// name needs [SyncDir].
func (f *File) Sync() error {
	if err := announce(Op{Kind: OpSync, Path: f.path}); err != nil {
		return err
	}
	if err := retry(func() error { return datasync(f.fd) }); err != nil {
		return f.fail("sync", err)
	}
	return nil
}

// SyncDir returns when the names in dir (created, renamed, removed) survive a power
// loss.
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
