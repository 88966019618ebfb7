package gitignore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heartbeat/internal/disk"
)

// Read returns the content of the .gitignore at path, and whether it is there. It is
// an error if Write could not replace it.
func Read(path string) (content []byte, there bool, err error) {
	info, err := disk.StatName(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	mode, err := os.Lstat(path)
	if err != nil {
		return nil, false, err
	}
	switch {
	case mode.Mode()&fs.ModeSymlink != 0:
		return nil, true, fmt.Errorf("%s is a symbolic link, which git does not follow: make it a file", path)
	case !mode.Mode().IsRegular():
		return nil, true, fmt.Errorf("%s is not a regular file: move it away", path)
	case int(info.UID) != os.Geteuid():
		return nil, true, fmt.Errorf("%s belongs to user %d: change it as that user", path, info.UID)
	case mode.Mode().Perm()&0o200 == 0:
		return nil, true, fmt.Errorf("%s is read-only (mode %04o): make it writable, then try again", path, mode.Mode().Perm())
	}
	content, err = disk.ReadFile(path, MaxFile)
	return content, true, err
}

// Write replaces the file at path, with the mode it has, or 0644 for a new one. Readers
// see the old content or the new.
func Write(path string, content []byte) (err error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Lstat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync())
	if err = errors.Join(err, f.Close()); err == nil {
		err = disk.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
