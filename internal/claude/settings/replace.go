package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// madeName is an empty file that marks a directory as made for the settings.
const madeName = ".made-by-heartbeat"

// ErrChanged means that another program wrote the settings file during the edit. Nothing was written: try again.
var ErrChanged = errors.New("the file changed while it was being edited: try again")

// testOnlyBeforeWrite runs between reading a file and writing it.
var testOnlyBeforeWrite = func() {}

// read returns the content of a regular file, or nil if there is none.
func read(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // reading a pipe would wait for its writer
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return disk.ReadFile(path, MaxFile)
}

// write keeps a copy before the first change, and then changes the file, unless it is no longer as the plan found it:
// then the error is [ErrChanged].
func (p plan) write(kept string) (changed bool, err error) {
	if err := writable(p.target); err != nil {
		return false, err
	}
	if err := makeDir(filepath.Dir(p.target)); err != nil {
		return false, err
	}
	dir, err := os.Open(filepath.Dir(p.target))
	if err != nil {
		return false, err
	}
	defer dir.Close() // unlocks it: each of two edits at once would undo the other's
	if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false, ErrChanged
	}
	if err := p.stillHolds(); err != nil {
		return false, err
	}
	if p.first { // if there is no file, this removes the copy of an earlier one
		if err := replace(kept, p.target, p.file); err != nil {
			return false, fmt.Errorf("keep the file as it is: %w", err)
		}
		defer func() {
			if !changed {
				_ = disk.Remove(kept)
			}
		}()
	}
	testOnlyBeforeWrite()
	if err := p.stillHolds(); err != nil {
		return false, err
	}
	if err := replace(p.target, p.target, p.after); err != nil {
		return false, fmt.Errorf("write: %w", err)
	}
	if err := disk.SyncDir(filepath.Dir(p.target)); err != nil {
		return true, fmt.Errorf("sync directory: %w", err)
	}
	return true, nil
}

// stillHolds returns [ErrChanged] if the file is no longer as the plan found it.
func (p plan) stillHolds() error {
	now, err := read(p.target)
	if err == nil && !bytes.Equal(now, p.file) {
		err = ErrChanged
	}
	return err
}

// writable returns an error for a read-only file. To replace it takes no write permission, but somebody made the file
// read-only on purpose, or a tool owns it and would overwrite our edit.
func writable(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o200 == 0 { // access(2) lets root write to read-only files
		return fmt.Errorf("%s is read-only (mode %04o): make it writable or choose another scope, then try again: %w",
			path, info.Mode().Perm(), fs.ErrPermission)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// replace replaces the file at path; nil means no file. The new file gets the owner, group and mode of like.
func replace(path, like string, content []byte) error {
	if content == nil {
		return disk.Remove(path)
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Lstat(like); err == nil {
		mode = info.Mode().Perm()
	} else {
		like = filepath.Dir(path)
	}
	tmp := path + ".heartbeat-tmp" // since edits of a folder exclude each other, a killed one left what is there
	err := disk.Remove(tmp)
	f, unmade := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err = errors.Join(err, unmade); err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, chownLike(f, like), f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	return errors.Join(err, disk.Remove(tmp)) // it is gone after the rename
}

// chownLike copies the owner and group of like to f. Without root it copies only the group of a file, and only if that is
// one of the user's groups.
func chownLike(f *os.File, like string) error {
	info, err := disk.StatFile(like) // the folder may be behind a link
	switch {
	case err != nil:
		return err
	case os.Geteuid() == 0:
		return f.Chown(int(info.UID), int(info.GID))
	case !info.IsDir:
		_ = f.Chown(-1, int(info.GID)) // fails if it is not one of the user's groups
	}
	return nil
}

// makeDir creates a directory and its missing parents, and marks each as made. Root gives them to the owner of the
// directory above.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := filepath.Dir(dir)
	if err := makeDir(above); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	note, err := os.OpenFile(filepath.Join(dir, madeName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	made, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err = errors.Join(err, chownLike(note, above), note.Close()); err != nil {
		return err
	}
	return errors.Join(chownLike(made, above), made.Close(), disk.SyncDir(above))
}

// removeMade removes a directory that was made for the settings and is now empty, and such directories above it.
func removeMade(dir string) {
	for ; ; dir = filepath.Dir(dir) {
		names, more, err := disk.Names(dir, 2)
		if err != nil || more || !slices.Equal(names, []string{madeName}) {
			return
		}
		if disk.Remove(filepath.Join(dir, madeName)) != nil || os.Remove(dir) != nil {
			return // not empty any more
		}
	}
}
