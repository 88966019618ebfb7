// Package folder is what a hosted session has on disk: its files, the lock that its host holds for
// life, and its record in the host's database. It also finds a session by its ID alone.
//
// Folders are private to their user. All reads are bounded and follow no links, since the session's
// agent can write there.
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
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
)

// Folder is where a session's files are. It need not exist.
type Folder struct {
	ID string // the session's ID
	DB string // the guild's database, an absolute path
}

// At returns the folder of a session beside its database.
func At(db, id string) (Folder, error) {
	if err := CheckID(id); err != nil {
		return Folder{}, fmt.Errorf("the session id %w", err)
	}
	db, err := resolve(db)
	if err != nil {
		return Folder{}, fmt.Errorf("find the folder of session %s: %w", id, err)
	}
	return Folder{ID: id, DB: db}, nil
}

// resolve returns a database's path without links in its directory, so that a session is listed once. It does not
// follow a link of the file itself: what belongs to the database lies beside the given name.
func resolve(db string) (string, error) {
	db, err := filepath.Abs(db)
	if err != nil {
		return "", err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(db)); err == nil {
		return filepath.Join(dir, filepath.Base(db)), nil
	}
	return db, nil // its directory is missing, which its users report
}

// Root is the directory that holds the folders of all sessions beside a database.
func Root(db string) string { return filepath.Join(filepath.Dir(db), "heartbeat-host") }

// Dir is the session's directory.
func (f Folder) Dir() string { return filepath.Join(Root(f.DB), f.ID) }

// StatePath is the file in which older releases keep the [State].
func (f Folder) StatePath() string { return filepath.Join(f.Dir(), "state.json") }

// LockPath is the file that the host keeps locked for as long as it lives.
func (f Folder) LockPath() string { return filepath.Join(f.Dir(), "lock") }

// SocketPath is the unix socket that the host listens on, perhaps longer than the 107 bytes of such an address.
func (f Folder) SocketPath() string { return filepath.Join(f.Dir(), "sock") }

// InboxPath is the session's own inbox.
func (f Folder) InboxPath() string { return filepath.Join(f.Dir(), "inbox", "inbox.jsonl") }

// SpoolPath is the file in which older releases keep messages.
func (f Folder) SpoolPath() string { return filepath.Join(f.Dir(), "messages.spool") }

// TempDir is the directory of files that must not outlive the session.
func (f Folder) TempDir() string { return filepath.Join(f.Dir(), "tmp") }

// Exists reports whether the session has a folder.
func (f Folder) Exists() (bool, error) { return disk.Exists(f.Dir()) }

// Make makes the session's private directories in that of the database, which must exist, and checks what is there.
func (f Folder) Make() error {
	return makeDirs(Root(f.DB), f.Dir(), filepath.Dir(f.InboxPath()), f.TempDir())
}

// MakeRoot makes the directory that holds the folders of all sessions beside a database.
func MakeRoot(db string) error { return makeDirs(Root(db)) }

func makeDirs(dirs ...string) error {
	for _, dir := range dirs {
		err := disk.MakeDir(dir) // survives a power loss
		if errors.Is(err, fs.ErrExist) {
			// Its maker may have been killed before the name was synced.
			err = errors.Join(CheckDir(dir), disk.SyncDir(filepath.Dir(dir)))
		}
		if err != nil {
			return fmt.Errorf("make a folder for hosted sessions: %w", err)
		}
	}
	return nil
}

// check refuses a folder that is not ours. Without a folder the error matches [fs.ErrNotExist].
func (f Folder) check() error {
	if err := CheckDir(Root(f.DB)); err != nil {
		return err
	}
	return CheckDir(f.Dir())
}

// CheckDir refuses a directory to which another user may have added files under our names.
func CheckDir(path string) error {
	info, err := disk.StatName(path)
	if err != nil {
		return fmt.Errorf("read a session's folder: %w", err)
	}
	me := uint32(os.Geteuid())
	switch {
	case info.IsLink:
		return fmt.Errorf("%s is a symbolic link, which is never followed for a session's folder: remove it: %w", path, disk.ErrForeign)
	case !info.IsDir:
		return fmt.Errorf("%s is not a directory: remove it: %w", path, disk.ErrForeign)
	case info.UID != me && (me != 0 || !OwnsParent(path, info.UID)):
		return fmt.Errorf("%s belongs to user %d, and this is user %d: %w", path, info.UID, me, disk.ErrForeign)
	case info.Mode&0o022 != 0:
		return fmt.Errorf("others may write to %s (mode %04o): take that right away (chmod go-w): %w", path, info.Mode, disk.ErrForeign)
	}
	return nil
}

// OwnsParent reports whether a user owns the directory that contains path: root may work there for that user.
func OwnsParent(path string, uid uint32) bool {
	parent, err := disk.StatDir(filepath.Dir(path))
	return err == nil && parent.UID == uid
}

// Beside returns the folders of all sessions beside databases, by ID. The error names what could not be read.
func Beside(dbs ...string) (all []Folder, problems error) {
	roots := map[string]bool{}
	for _, db := range dbs {
		if root := Root(db); !roots[root] {
			roots[root] = true
			found, err := beside(db)
			all, problems = append(all, found...), errors.Join(problems, err)
		}
	}
	return all, problems
}

func beside(db string) ([]Folder, error) {
	db, err := resolve(db)
	if err != nil {
		return nil, fmt.Errorf("list the sessions beside a database: %w", err)
	}
	root := Root(db)
	err = CheckDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("list the sessions beside %s: %w", db, err)
	}
	var all []Folder
	for _, name := range names {
		if name.IsDir() && CheckID(name.Name()) == nil {
			all = append(all, Folder{ID: name.Name(), DB: db})
		}
	}
	return all, nil
}

// MaxID is the longest session ID, in bytes.
const MaxID = 128

// CheckID says what is wrong with a session ID. IDs become file names: they consist of ASCII letters,
// digits, dots, underscores and hyphens, begin with a letter or digit, and have at most [MaxID] bytes.
func CheckID(id string) error {
	switch {
	case id == "":
		return errors.New("must not be empty")
	case len(id) > MaxID:
		return fmt.Errorf("must have at most %d characters, and has %d", MaxID, len(id))
	case !isAlnum(id[0]):
		return errors.New("must begin with a letter or a digit, since files are named after it")
	}
	for _, r := range id {
		if r > 127 || !isAlnum(byte(r)) && r != '.' && r != '_' && r != '-' {
			return fmt.Errorf("must consist of letters, digits, '.', '_' and '-', since files are named after it, and has %s", strconv.QuoteRuneToASCII(r))
		}
	}
	return nil
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// known is a file by which a user's sessions are found: one for each guild database with sessions beside it, named @ and
// a hash of the database's path. Older releases have one for each session, named after it, which lists databases.
type known struct {
	DB  string   `json:"db,omitempty"`
	DBs []string `json:"dbs,omitempty"`
}

// Remember records a database, so that the sessions beside it can be found by their IDs alone.
func Remember(db string) error {
	if err := remember(db); err != nil {
		return fmt.Errorf("note that there are sessions beside %s: %w", db, err)
	}
	return nil
}

func remember(db string) error {
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

// Databases returns the databases with sessions of this user beside them. The error names unreadable files.
func Databases() (dbs []string, problems error) {
	problems = eachKnown(func(_ string, all []string) error {
		dbs = append(dbs, all...)
		return nil
	})
	slices.Sort(dbs)
	return slices.Compact(dbs), problems
}

// Prune forgets databases without sessions, and removes what a killed [Folder.Purge] has left. It does not forget a
// database whose directory is missing: the directory may only be unmounted.
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
		return nil, nil // another process has converted or removed it
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
