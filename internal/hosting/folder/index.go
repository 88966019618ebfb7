package folder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
)

// Index finds a user's sessions by their ids alone. An entry may be stale: the
// folder that it names may be gone.
type Index struct{ dir string }

// UserIndex is the index of this process's user, in
// ${XDG_STATE_HOME:-~/.local/state}/heartbeat/hosts.
func UserIndex() (Index, error) {
	dir, err := disk.UserState("hosts")
	if err != nil {
		return Index{}, fmt.Errorf("find the index of hosted sessions: %w", err)
	}
	return IndexAt(dir), nil
}

// IndexAt is an index in another directory.
func IndexAt(dir string) Index { return Index{dir: dir} }

// indexed is the content of an index file: every database beside which there is a
// session of its name, the latest first.
type indexed struct {
	DBs []string `json:"dbs"`
}

const maxIndexed = 1 << 20

// Add adds a session.
func (x Index) Add(f Folder) error {
	return x.change(f, func(dbs []string) []string { return append([]string{f.DB}, dbs...) })
}

// Remove removes a session. It is no error if it is not there.
func (x Index) Remove(f Folder) error {
	return x.change(f, func(dbs []string) []string { return dbs })
}

// Find returns the folders of the sessions with this id, the latest first.
func (x Index) Find(id string) ([]Folder, error) {
	if err := CheckID(id); err != nil {
		return nil, fmt.Errorf("the session id %w", err)
	}
	dbs, err := x.read(id)
	if err != nil {
		return nil, err
	}
	folders := make([]Folder, 0, len(dbs))
	for _, db := range dbs {
		folders = append(folders, Folder{ID: id, DB: db})
	}
	return folders, nil
}

// All returns the folders of all sessions, by id. Entries that cannot be read are
// left out and named in the error.
func (x Index) All() ([]Folder, error) {
	names, err := os.ReadDir(x.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the hosted sessions: %w", err)
	}
	var all []Folder
	var problems error
	for _, name := range names {
		if CheckID(name.Name()) != nil {
			continue
		}
		found, err := x.Find(name.Name())
		all, problems = append(all, found...), errors.Join(problems, err)
	}
	return all, problems
}

// Prune removes the entries of sessions whose folder is gone, and returns how many
// these were. It keeps those of a database whose directory is not there: that may
// only not be mounted.
func (x Index) Prune() (int, error) {
	all, problems := x.All()
	pruned := 0
	for _, f := range all {
		if _, err := disk.StatDir(filepath.Dir(f.DB)); err != nil {
			continue
		}
		if there, err := f.Exists(); err != nil || there {
			problems = errors.Join(problems, err)
			continue
		}
		if err := errors.Join(f.removeGone(), x.Remove(f)); err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		pruned++
	}
	return pruned, problems
}

func (x Index) read(id string) ([]string, error) {
	path := filepath.Join(x.dir, id)
	b, err := disk.ReadState(path, maxIndexed)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look session %s up in the index: %w", id, err)
	}
	var in indexed
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, fmt.Errorf("look session %s up in the index: %s is damaged: remove it: %w", id, path, err)
	}
	return slices.DeleteFunc(in.DBs, func(db string) bool { return !filepath.IsAbs(db) }), nil
}

// change publishes what edit makes of the other databases that have the session.
func (x Index) change(f Folder, edit func(others []string) []string) error {
	if err := x.make(); err != nil {
		return err
	}
	lock, err := disk.AcquireLock(context.Background(), filepath.Join(x.dir, ".lock"), indexPatience)
	if err != nil {
		return fmt.Errorf("lock the index of hosted sessions: %w", err)
	}
	err = x.publish(f, edit)
	if err = errors.Join(err, lock.Release()); err != nil {
		return fmt.Errorf("change the index of hosted sessions: %w", err)
	}
	return nil
}

func (x Index) publish(f Folder, edit func(others []string) []string) error {
	dbs, _ := x.read(f.ID) // what is damaged is replaced
	dbs = edit(slices.DeleteFunc(dbs, func(db string) bool { return db == f.DB }))
	path := filepath.Join(x.dir, f.ID)
	if len(dbs) == 0 {
		return disk.Remove(path)
	}
	b, err := flat.JSON(indexed{dbs})
	if err != nil {
		return err
	}
	// No id has an @, so the temporary file is never another session's entry.
	next := filepath.Join(x.dir, "."+f.ID+"@")
	if err := disk.Publish(next, b, true); err != nil {
		return err
	}
	return disk.Rename(next, path)
}

func (x Index) make() error {
	if err := os.MkdirAll(x.dir, 0o700); err != nil {
		return fmt.Errorf("make the index of hosted sessions: %w", err)
	}
	return CheckDir(x.dir)
}
