package folder

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
)

// known is a file for finding a user's sessions: one for each guild database with sessions beside
// it, named @ and a hash of its path. Older releases have one for each session, named after it,
// that lists the databases.
type known struct {
	DB  string   `json:"db,omitempty"`
	DBs []string `json:"dbs,omitempty"`
}

// Remember lets the sessions beside a database be found by their IDs alone.
func Remember(db string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("note that there are sessions beside %s: %w", db, err)
		}
	}()
	dir, err := disk.UserState("hosts")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, fmt.Sprintf("@%x", sha256.Sum256([]byte(db)))[:33])
	if there, err := disk.Exists(path); err == nil && there {
		return nil
	}
	text, err := flat.JSON(known{DB: db})
	if err = errors.Join(err, os.MkdirAll(dir, 0o700)); err == nil {
		err = CheckDir(dir)
	}
	if err != nil {
		return err
	}
	lock, err := disk.AcquireLock(context.Background(), filepath.Join(dir, ".lock"), 10*time.Second) // nobody holds it for long
	if err != nil {
		return err
	}
	return errors.Join(disk.Publish(path, text, true), lock.Release())
}

// Databases are the databases with sessions of this user beside them. The error names those that
// could not be read.
func Databases() (dbs []string, problems error) {
	problems = eachKnown(func(_ string, all []string) error {
		dbs = append(dbs, all...)
		return nil
	})
	slices.Sort(dbs)
	return slices.Compact(dbs), problems
}

// Prune forgets databases without sessions, and removes what a killed [Folder.Purge] has left. It
// keeps a database whose directory is missing, which may only be unmounted.
func Prune() error {
	return eachKnown(func(path string, dbs []string) error {
		for _, db := range dbs {
			gone, _ := filepath.Glob(filepath.Join(Root(db), ".*.gone")) // the pattern is valid
			for _, dir := range gone {
				if err := os.RemoveAll(dir); err != nil { // RemoveAll follows no links
					return err
				}
			}
			_, err := disk.StatDir(filepath.Dir(db))
			if there, existsErr := disk.Exists(Root(db)); err != nil || existsErr != nil || there {
				return existsErr
			}
		}
		return disk.Remove(path)
	})
}

// eachKnown calls do with each file and the databases that it names. It converts files of older releases.
func eachKnown(do func(path string, dbs []string) error) error {
	dir, err := disk.UserState("hosts")
	var names []fs.DirEntry
	if err == nil {
		names, err = os.ReadDir(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("find the databases of this user's sessions: %w", err)
	}
	var problems error
	for _, name := range names {
		path, isOlder := filepath.Join(dir, name.Name()), CheckID(name.Name()) == nil
		if !isOlder && (name.Name()[0] != '@' || strings.HasSuffix(path, ".tmp")) {
			continue
		}
		dbs, err := readKnown(path)
		if err == nil {
			err = do(path, dbs)
		}
		for i := 0; isOlder && err == nil && i < len(dbs); i++ {
			err = Remember(dbs[i])
		}
		if isOlder && err == nil {
			err = disk.Remove(path)
		}
		problems = errors.Join(problems, err)
	}
	return problems
}

func readKnown(path string) ([]string, error) {
	b, err := disk.ReadState(path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // somebody has moved or forgotten it
	}
	var all known
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("find the databases of this user's sessions: %s cannot be read: remove it: %w", path, err)
	}
	return slices.DeleteFunc(append(all.DBs, all.DB), func(db string) bool { return !filepath.IsAbs(db) }), nil
}

// Everywhere returns the folders of all of this user's sessions. The error names what could not be read.
func Everywhere() (all []Folder, problems error) {
	dbs, problems := Databases()
	roots := map[string]bool{}
	for _, db := range dbs {
		if root := Root(db); !roots[root] {
			roots[root] = true
			found, err := Beside(db)
			all, problems = append(all, found...), errors.Join(problems, err)
		}
	}
	return all, problems
}
