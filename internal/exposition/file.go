package exposition

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces a file, so that a collector sees the old one or the new one,
// never a half. It refuses what is no regular file: a link itself would be replaced,
// not the file that it leads to.
func WriteFile(path string, content []byte) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("write figures: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("write figures: %s is a symbolic link, which is not followed: name the file itself", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("write figures: %s is not a regular file: choose another name", path)
	}
	// A collector reads *.prom, so the name of a part must not end in that.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write figures to %s: %w", path, err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write figures to %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
