package config

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		return &Problem{Path: "dbPath", Reason: "cannot be looked at: " + reason(err)}
	case info.IsDir:
		return &Problem{Path: "dbPath", Reason: "must be a file, and is a directory: " + words.Line(c.DBPath)}
	case !info.IsRegular:
		return &Problem{Path: "dbPath", Reason: "must be a regular file: " + words.Line(c.DBPath)}
	}
	if err := unix.Access(c.DBPath, unix.R_OK|unix.W_OK); err != nil {
		return &Problem{Path: "dbPath", Reason: "must be a file that this user may write: " + words.Line(c.DBPath) + ": " + err.Error()}
	}
	return nil
}

func checkDir(path, dir, to string, mode uint32) *Problem {
	info, err := disk.StatFile(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Problem{Path: path, Reason: "needs a directory that is not there: " + words.Line(dir)}
	case err != nil:
		return &Problem{Path: path, Reason: "needs a directory that cannot be looked at: " + reason(err)}
	case !info.IsDir:
		return &Problem{Path: path, Reason: "needs a directory, and this is none: " + words.Line(dir)}
	}
	if err := unix.Access(dir, mode); err != nil {
		return &Problem{Path: path, Reason: "needs a directory that this user may " + to + ": " + words.Line(dir) + ": " + err.Error()}
	}
	return nil
}

// reason is an error on one line, whatever the path in it has.
func reason(err error) string { return words.Line(err.Error()) }

// MaxSize is the largest configuration, in bytes.
const MaxSize = 64 << 20

// Read reads a configuration to its end. What is empty, too large or does not end
// before ctx is a [*Problem]; after the latter a goroutine still reads r.
func Read(ctx context.Context, r io.Reader) ([]byte, error) {
	type outcome struct {
		text []byte
		err  error
	}
	read := make(chan outcome, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
		read <- outcome{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, &Problem{Reason: "on stdin did not end in time: write one JSON object and close it"}
	case o := <-read:
		switch {
		case o.err != nil:
			return nil, fmt.Errorf("read the config: %w", o.err)
		case len(o.text) > MaxSize:
			return nil, tooLarge()
		}
		return o.text, nil
	}
}

func tooLarge() *Problem { return &Problem{Reason: "on stdin is larger than 64 MiB"} }
