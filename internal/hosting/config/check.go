package config

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

// Check looks at what the config names: the working directory and the database's
// place. Its error is a [*Problem].
func (c *Config) Check() error {
	if p := checkDir("cwd", c.Cwd, "enter", unix.X_OK); p != nil {
		return p
	}
	if p := checkDir("dbPath", filepath.Dir(c.DBPath), "write to", unix.W_OK|unix.X_OK); p != nil {
		return p
	}
	info, err := disk.StatFile(c.DBPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &Problem{"dbPath", "cannot be looked at: " + reason(err)}
	case info.IsDir:
		return &Problem{"dbPath", "must be a file, and is a directory: " + words.Line(c.DBPath)}
	case !info.IsRegular:
		return &Problem{"dbPath", "must be a regular file: " + words.Line(c.DBPath)}
	}
	if err := unix.Access(c.DBPath, unix.R_OK|unix.W_OK); err != nil {
		return &Problem{"dbPath", "must be a file that this user may write: " + words.Line(c.DBPath) + ": " + err.Error()}
	}
	return nil
}

func checkDir(path, dir, to string, mode uint32) *Problem {
	info, err := disk.StatFile(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Problem{path, "needs a directory that is not there: " + words.Line(dir)}
	case err != nil:
		return &Problem{path, "needs a directory that cannot be looked at: " + reason(err)}
	case !info.IsDir:
		return &Problem{path, "needs a directory, and this is none: " + words.Line(dir)}
	}
	if err := unix.Access(dir, mode); err != nil {
		return &Problem{path, "needs a directory that this user may " + to + ": " + words.Line(dir) + ": " + err.Error()}
	}
	return nil
}

// reason is an error on one line, whatever the path in it has.
func reason(err error) string { return words.Line(err.Error()) }
