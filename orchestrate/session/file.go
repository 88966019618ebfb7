package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/internal/disk"
)

// ErrID says that a session id cannot be part of a file's name.
var ErrID = errors.New("not a session id")

const (
	lockName = ".heartbeat-lock"
	lockWait = 5 * time.Second
	maxID    = 128
	maxSize  = 64 << 20 // no prompt is that long: a larger file is something else
)

// File is the state file of one session. It is safe for concurrent use.
type File struct{ dir, id string }

// At is the state file of a session in a state directory. Neither needs to exist. An id has
// at most 128 letters, digits, dots, dashes and underscores, and begins with a letter or
// digit; the error for any other matches [ErrID]. (The CLI accepts any id, and so writes
// anywhere.)
func At(dir, id string) (File, error) {
	if !validID(id) {
		return File{}, fmt.Errorf("session %.200q: its id must be letters, digits, dots, dashes and underscores, %d at most: %w", id, maxID, ErrID)
	}
	return File{dir: dir, id: id}, nil
}

func validID(id string) bool {
	if id == "" || len(id) > maxID || strings.Contains("._-", id[:1]) {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}) < 0
}

// Path is the path of the file.
func (f File) Path() string { return filepath.Join(f.dir, f.id+".md") }

// ID is the session's id.
func (f File) ID() string { return f.id }

// Read reads the state. If there is none, the error matches [fs.ErrNotExist].
func (f File) Read() (State, error) {
	file, err := disk.OpenRead(f.Path())
	if err != nil {
		return State{}, err
	}
	if size := file.Info().Size; size > maxSize {
		return State{}, errors.Join(fmt.Errorf("read %s: %d bytes are too many for a session's state", f.Path(), size), file.Close())
	}
	b, err := file.ReadAll()
	return Parse(b), errors.Join(err, file.Close())
}

// Create writes the state of a session that has none. If it has one, that is kept, and the
// error matches [fs.ErrExist].
func (f File) Create(ctx context.Context, s State) error {
	return f.locked(ctx, func() error {
		exists, err := disk.Exists(f.Path())
		if err == nil && exists {
			err = &fs.PathError{Op: "create", Path: f.Path(), Err: fs.ErrExist}
		}
		if err != nil {
			return err
		}
		return f.publish(s)
	})
}

// Update reads the state, calls change, and writes the changed state unless change returns
// an error. It returns the state that was written. If there is no state, the error matches
// [fs.ErrNotExist].
func (f File) Update(ctx context.Context, change func(*State) error) (s State, err error) {
	err = f.locked(ctx, func() error {
		var err error
		if s, err = f.Read(); err != nil {
			return err
		}
		if err := change(&s); err != nil {
			return err
		}
		return f.publish(s)
	})
	return s, err
}

// Delete removes the state. It is no error if there is none.
func (f File) Delete(ctx context.Context) error {
	if _, err := os.Stat(f.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.locked(ctx, func() error { return disk.Remove(f.Path()) })
}

// DeleteUnbound removes the state unless a run is bound to the session.
func (f File) DeleteUnbound(ctx context.Context) error {
	if s, err := f.Read(); err != nil || s.RunID != "" {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	return f.locked(ctx, func() error {
		if s, err := f.Read(); err != nil || s.RunID != "" {
			return nil // another process changed it meanwhile
		}
		return disk.Remove(f.Path())
	})
}

func (f File) publish(s State) error {
	b, err := s.Format()
	if err != nil {
		return err
	}
	return disk.Publish(f.Path(), b, true)
}

// locked calls do while no other process of heartbeat changes this directory.
func (f File) locked(ctx context.Context, do func() error) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	lock, err := disk.AcquireLock(ctx, filepath.Join(f.dir, lockName), lockWait)
	if err != nil {
		return err
	}
	return errors.Join(do(), lock.Release())
}
