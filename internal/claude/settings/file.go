package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heartbeat/internal/disk"
)

// MaxFile is the largest settings file that is read, in bytes.
const MaxFile = 16 << 20

// emptyObject is a settings file with nothing in it.
const emptyObject = "{}\n"

// testOnlyBeforeWrite runs between reading a file and writing it.
var testOnlyBeforeWrite = func() {}

// InstallFile applies Install to the settings file at path and reports whether it changed the file.
//
// A missing file is created with mode 0600, missing directories with mode 0700. An existing file keeps its owner, group
// and mode. Root gives what it creates to the owner of the directory. If the file or its .claude directory is a symbolic
// link, the error is a *LinkError, unless links is FollowLinks: then the link stays, and its target is edited.
//
// After a nil error the new file survives a power loss. After an error the file is the old one, unless changed is true:
// then the new one is in place, but a crash of the machine may undo that.
func InstallFile(path string, w Wiring, links Links) (changed bool, err error) {
	return EditFile(path, links, emptyObject, func(file []byte) ([]byte, error) { return Install(file, w) })
}

// UninstallFile applies Uninstall to the settings file at path, with the promises of InstallFile. A file with nothing
// left in it is removed. If it is the target of a symbolic link, it becomes {} instead, so that the link still works.
func UninstallFile(path string, w Wiring, links Links) (changed bool, err error) {
	return EditFile(path, links, emptyObject, func(file []byte) ([]byte, error) { return Uninstall(file, w) })
}

// Read reads the file at path as an edit does, nil if there is none. Where an edit would refuse a link, so does Read.
func Read(path string, links Links) ([]byte, error) {
	_, text, err := open(path, links)
	return text, err
}

// open returns where the file is that path leads to, and what is in it.
func open(path string, links Links) (target string, text []byte, err error) {
	target, err = resolve(path)
	if err == nil {
		err = links.check(path, target)
	}
	if err == nil {
		text, err = read(target)
	}
	if err != nil {
		return "", nil, fmt.Errorf("settings: %w", err)
	}
	return target, text, nil
}

// EditFile applies change to the file at path, with the promises of [InstallFile]. Change gets nil for no file, and returns
// nil for a file with nothing left in it: that is removed. If it is the target of a symbolic link, it becomes nothing
// instead, as its format spells that.
func EditFile(path string, links Links, nothing string, change func([]byte) ([]byte, error)) (changed bool, err error) {
	target, before, err := open(path, links)
	if err != nil {
		return false, err
	}
	after, err := change(before)
	if err != nil {
		return false, fmt.Errorf("settings %s: %w", path, err)
	}
	if after == nil && before != nil && isLink(path) {
		after = []byte(nothing)
	}
	if bytes.Equal(before, after) {
		return false, nil
	}
	changed, err = replace(target, before, after)
	if err != nil {
		return changed, fmt.Errorf("settings %s: %w", path, err)
	}
	return true, nil
}

// resolve follows symbolic links to the file itself. The file need not exist, unless a link leads to it.
func resolve(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return target, err
	}
	if isLink(path) {
		return "", fmt.Errorf("%s is a symbolic link to nowhere: make the file it leads to, or remove it: %w", path, err)
	}
	return path, nil
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// read returns the contents of a regular file, or nil if there is none.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
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

// replace changes the contents of path from before to after, or removes the file if after is nil. If the contents are
// no longer before, the error is ErrChanged.
func replace(path string, before, after []byte) (changed bool, err error) {
	if err := writable(path); err != nil {
		return false, err
	}
	made, err := makeParent(path)
	if err != nil {
		return false, err
	}
	testOnlyBeforeWrite()
	now, err := read(path)
	if err != nil {
		return false, err
	}
	if !bytes.Equal(now, before) {
		return false, ErrChanged
	}
	if after == nil {
		err = os.Remove(path)
	} else {
		err = write(path, after)
	}
	if err != nil {
		return false, fmt.Errorf("write: %w", err)
	}
	return true, syncParents(path, made)
}

// writable returns an error if an existing file may not be written. Replacing a file needs no write permission, but
// somebody made it read-only on purpose, or a tool owns it and would overwrite our edit.
func writable(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o200 == 0 { // root may write to read-only files, so access(2) does not tell
		return fmt.Errorf("%s is read-only (mode %04o): make it writable or choose another scope, then try again: %w",
			path, info.Mode().Perm(), fs.ErrPermission)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// syncParents makes the rename in path's directory durable, and the directories that were made above it.
func syncParents(path string, made int) error {
	dir := filepath.Dir(path)
	for range made + 1 {
		if err := syncDir(dir); err != nil {
			return fmt.Errorf("sync directory: %w", err)
		}
		dir = filepath.Dir(dir)
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
