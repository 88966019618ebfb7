// Package folder is what a hosted session has on disk: its files, the lock that its host holds for
// life, its record in the host's database, and how to find a session by its ID alone.
//
// Folders are private to their user. All reads are bounded and follow no links, since the session's
// agent can write there.
package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"heartbeat/internal/disk"
)

// Folder is where a session's files are. It need not exist.
type Folder struct {
	ID string // the session's ID
	DB string // the guild's database, an absolute path
}

// At is the folder of a session beside its database.
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

// resolve gives a database one spelling, whatever links lead to its directory, so that a session is listed
// once. A link of the file itself is not followed: what belongs to the database lies beside the given name.
func resolve(db string) (string, error) {
	db, err := filepath.Abs(db)
	if err != nil {
		return "", err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(db)); err == nil {
		return filepath.Join(dir, filepath.Base(db)), nil
	}
	return db, nil // its directory is missing, and whoever uses it reports that
}

// Root is the directory that holds the folders of all sessions beside a database.
func Root(db string) string { return filepath.Join(filepath.Dir(db), "heartbeat-host") }

// Dir is the session's directory.
func (f Folder) Dir() string { return filepath.Join(Root(f.DB), f.ID) }

// StatePath is the file in which older releases keep the [State].
func (f Folder) StatePath() string { return filepath.Join(f.Dir(), "state.json") }

// LockPath is the file that the host keeps locked for as long as it lives.
func (f Folder) LockPath() string { return filepath.Join(f.Dir(), "lock") }

// SocketPath is the unix socket that the host listens on. It may exceed the 107 bytes that fit into
// the address of a unix socket.
func (f Folder) SocketPath() string { return filepath.Join(f.Dir(), "sock") }

// InboxPath is the session's own inbox.
func (f Folder) InboxPath() string { return filepath.Join(f.Dir(), "inbox", "inbox.jsonl") }

// SpoolPath is the file in which older releases keep messages.
func (f Folder) SpoolPath() string { return filepath.Join(f.Dir(), "messages.spool") }

// TempDir is the directory of files that must not outlive the session.
func (f Folder) TempDir() string { return filepath.Join(f.Dir(), "tmp") }

// Exists reports whether the session has a folder.
func (f Folder) Exists() (bool, error) { return disk.Exists(f.Dir()) }

// Make makes the session's directories, private to their user, and checks those that exist. The
// database's directory must exist.
func (f Folder) Make() error {
	return makeDirs(Root(f.DB), f.Dir(), filepath.Dir(f.InboxPath()), f.TempDir())
}

// MakeRoot makes the directory that holds the folders of all sessions beside a database.
func MakeRoot(db string) error { return makeDirs(Root(db)) }

func makeDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := makeDir(dir); err != nil {
			return fmt.Errorf("make a folder for hosted sessions: %w", err)
		}
	}
	return nil
}

// makeDir makes a directory that survives a power loss, or checks an existing one.
func makeDir(path string) error {
	err := disk.MakeDir(path)
	if errors.Is(err, fs.ErrExist) {
		// Its maker may have been killed before its name was on disk.
		err = errors.Join(CheckDir(path), disk.SyncDir(filepath.Dir(path)))
	}
	return err
}

// check returns an error if the folder is not a directory of ours. It matches [fs.ErrNotExist] if
// there is none.
func (f Folder) check() error {
	if err := CheckDir(Root(f.DB)); err != nil {
		return err
	}
	return CheckDir(f.Dir())
}

// CheckDir refuses a directory in which somebody else may have put our names.
func CheckDir(path string) error {
	info, err := disk.StatName(path)
	if err != nil {
		return fmt.Errorf("look at a session's folder: %w", err)
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

// OwnsParent lets root look after a user's sessions in that user's directory.
func OwnsParent(path string, uid uint32) bool {
	parent, err := disk.StatDir(filepath.Dir(path))
	return err == nil && parent.UID == uid
}

// Beside returns the folders of all sessions beside a database, by ID.
func Beside(db string) ([]Folder, error) {
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
