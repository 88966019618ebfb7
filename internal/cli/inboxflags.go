package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
)

// ErrNoInbox reports that no inbox was named.
var ErrNoInbox = errors.New("no inbox: name it with --inbox PATH or in " + InboxVariable)

// DefaultInbox is where init creates a project's inbox, relative to the project's folder.
const DefaultInbox = "work/inbox.jsonl"

// InitFile is the name of the record that init writes beside a new inbox.
const InitFile = ".init.json"

// AddNamedInbox declares --inbox. Its default is the environment variable alone.
func AddNamedInbox(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "inbox", os.Getenv(InboxVariable), "`path` of the JSONL inbox (also "+InboxVariable+")")
	f.Lookup("inbox").DefValue = ""
}

// AddInbox declares --inbox. The default is the environment variable, then [FindInbox].
func AddInbox(f *pflag.FlagSet, path *string) {
	AddNamedInbox(f, path)
	f.Lookup("inbox").Usage = "`path` of the JSONL inbox (also " + InboxVariable + "; else " + DefaultInbox + " is looked for here and in the folders above)"
	if *path == "" {
		*path = FindInbox()
	}
}

// FindInbox returns the project's inbox, or "" if there is none. It looks for work/inbox.jsonl in the current folder
// and those above. The search ends at the project's root (the folder with .git), the home folder and the file system's
// root. It also ends at a folder of another user, who could instruct the agent with a planted inbox.
var FindInbox = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return ""
	}
	ends := []string{"/"}
	if home, err := os.UserHomeDir(); err == nil {
		home, _ = filepath.EvalSymlinks(home) // on failure no folder matches it
		ends = append(ends, home)
	}
	for first := dir; isOwn(dir) && (dir == first || !slices.Contains(ends, dir)); dir = filepath.Dir(dir) {
		path := filepath.Join(dir, DefaultInbox)
		beside := filepath.Dir(path)
		if isOwn(beside) && (isThere(path) || isThere(filepath.Join(beside, InitFile))) {
			return path
		}
		if slices.Contains(ends, dir) || isThere(filepath.Join(dir, ".git")) {
			break
		}
	}
	return ""
})

func isOwn(dir string) bool {
	info, err := disk.StatName(dir)
	return err == nil && info.IsDir && int(info.UID) == os.Geteuid()
}

func isThere(path string) bool {
	there, _ := disk.Exists(path) // what cannot be searched has no inbox for this user
	return there
}

// SayFound notes on stderr which inbox FindInbox chose, unless a flag or the variable named one.
func SayFound(f *pflag.FlagSet, s Streams) (found bool) {
	if os.Getenv(InboxVariable) != "" || f.Changed("inbox") || FindInbox() == "" {
		return false
	}
	s.Note("the inbox is %s", FindInbox())
	return true
}

// OpenAsOwner is [OpenInbox] for a verb. A process of root first becomes the owner of the inbox's folder.
func OpenAsOwner(path string, o inbox.Options) (*inbox.Inbox, error) {
	if path == "" {
		return nil, ErrNoInbox
	}
	owner, err := disk.BecomeOwner(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	box, err := OpenInbox(path, o)
	if err != nil && owner != "" {
		err = fmt.Errorf("as %s, whose directory it is: %w", owner, err)
	}
	return box, err
}

// OpenInbox opens the inbox at path. An empty path is [ErrNoInbox].
func OpenInbox(path string, o inbox.Options) (*inbox.Inbox, error) {
	if path == "" {
		return nil, ErrNoInbox
	}
	return inbox.Open(path, o)
}

const (
	// VerbLockWait is how long a verb that changes the inbox waits for its lock.
	VerbLockWait = 30 * time.Second
	// lookLockWait is how long a read-only verb waits. It needs the lock only to move due entries.
	lookLockWait = time.Second
)

// InboxFlags are the flags common to all verbs about an inbox.
type InboxFlags struct {
	Inbox string
	JSON  bool
	Adopt bool // trust state that was not written on this machine
	Stay  bool // do not become the owner: the verb writes somewhere else
}

// Add declares the flags.
func (i *InboxFlags) Add(f *pflag.FlagSet) {
	AddInbox(f, &i.Inbox)
	f.BoolVar(&i.JSON, "json", false, "print JSON, one object a line")
}

// Open opens the inbox for a verb that changes it.
func (i *InboxFlags) Open() (*inbox.Inbox, error) {
	box, err := OpenAsOwner(i.Inbox, inbox.Options{LockWait: VerbLockWait, Adopt: i.Adopt})
	return box, OrInit(err)
}

// OrInit adds to ErrNoInbox how to make an inbox, or why none was searched for.
func OrInit(err error) error {
	switch {
	case !errors.Is(err, ErrNoInbox):
		return err
	case !isOwn("."):
		return usageError{fmt.Errorf("%w: this folder belongs to another user, so none is looked for", err)}
	}
	return usageError{fmt.Errorf("%w, or have heartbeat init make one for this project", err)}
}

// OpenRead opens the inbox for a verb that only reads, once due entries were moved into it, or a failure of that noted.
func (i *InboxFlags) OpenRead(s Streams) (*inbox.Inbox, error) {
	open := OpenAsOwner
	if i.Stay {
		open = OpenInbox
	}
	box, err := open(i.Inbox, inbox.Options{LockWait: lookLockWait})
	if err != nil {
		return nil, OrInit(err)
	}
	warnings, err := box.MoveForeignAside(context.Background())
	s.Warn(warnings)
	if err != nil {
		s.Note("%v", err)
	}
	if err := box.Promote(context.Background()); err != nil {
		s.Note("what is scheduled and due is not in the inbox yet: %v", err)
	}
	return box, nil
}

// PrintJSON writes v as one line of JSON.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Print prints v as JSON with --json, and the sentence otherwise.
func (i *InboxFlags) Print(s Streams, v any, sentence string) error {
	if !i.JSON {
		_, err := fmt.Fprintln(s.Out, sentence)
		return err
	}
	return PrintJSON(s.Out, v)
}

// InTransaction runs f in a transaction and prints its warnings, even if f fails.
func InTransaction(box *inbox.Inbox, s Streams, f func(*inbox.Tx) error) error {
	tx, err := box.Begin(context.Background())
	if err != nil {
		return err
	}
	err = f(tx)
	s.Warn(tx.Warnings())
	return errors.Join(err, tx.Close())
}

// InboxVariable is the environment variable that names the inbox where no flag does.
const InboxVariable = "HEARTBEAT_INBOX"

// LaunchedVariable, in a session that heartbeat-launch manages, is the absolute path of the inbox that its hook serves.
const LaunchedVariable = "HEARTBEAT_LAUNCHED"

// DefaultSettle is how long a last line without a newline must stay unchanged to count as an entry.
const DefaultSettle = 250 * time.Millisecond

// WatchPoll is how often a waiting command checks the inbox where file events do not arrive.
const WatchPoll = time.Second

// NewFlags returns a flag set that lists its flags in the order of declaration.
func NewFlags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {} // an error gets one sentence, not the whole help
	return f
}
