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
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/machine/rights"
)

// ErrNoInbox says that no inbox was named.
var ErrNoInbox = errors.New("no inbox: name it with --inbox PATH or in " + InboxVariable)

// DefaultInbox is where init puts a project's inbox, and where it is looked for.
const DefaultInbox = "work/inbox.jsonl"

// InitFile is what init writes beside the inbox that it sets up.
const InitFile = ".init.json"

// AddNamedInbox declares --inbox, which has to be named here or in the variable.
func AddNamedInbox(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "inbox", os.Getenv(InboxVariable), "`path` of the JSONL inbox (also "+InboxVariable+")")
	f.Lookup("inbox").DefValue = ""
}

// AddInbox declares --inbox. Where nothing names an inbox, that of [FindInbox] is meant.
func AddInbox(f *pflag.FlagSet, path *string) {
	AddNamedInbox(f, path)
	f.Lookup("inbox").Usage = "`path` of the JSONL inbox (also " + InboxVariable + "; else " + DefaultInbox + " is looked for here and in the folders above)"
	if *path == "" {
		*path = FindInbox()
	}
}

// FindInbox returns the inbox of the project that this process is in, "" for none: that in
// the folder work of the current folder or of one above it. The project's root, which has
// .git, ends the search. So do the home folder, the file system's root, and a folder of
// somebody else, who could instruct the agent with it.
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
		home, _ = filepath.EvalSymlinks(home) // or no folder is it
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

// isOwn reports whether it is a folder of this user's.
func isOwn(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && int(info.Sys().(*syscall.Stat_t).Uid) == os.Geteuid()
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// SayFound says on stderr which inbox was found, unless the flags or the variable name it.
func SayFound(f *pflag.FlagSet, s Streams) (found bool) {
	if os.Getenv(InboxVariable) != "" || f.Changed("inbox") || FindInbox() == "" {
		return false
	}
	s.Note("the inbox is %s", FindInbox())
	return true
}

// OpenAsOwner is [OpenInbox] for a verb: root first becomes the owner of the inbox's
// directory.
func OpenAsOwner(path string, o inbox.Options) (*inbox.Inbox, error) {
	if path == "" {
		return nil, ErrNoInbox
	}
	owner, err := rights.BecomeOwner(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	box, err := OpenInbox(path, o)
	if err != nil && owner != "" {
		err = fmt.Errorf("as %s, whose directory it is: %w", owner, err)
	}
	return box, err
}

// OpenInbox opens the inbox at path, which the flags have named.
func OpenInbox(path string, o inbox.Options) (*inbox.Inbox, error) {
	if path == "" {
		return nil, ErrNoInbox
	}
	return inbox.Open(path, o)
}

const (
	// VerbLockWait is how long a verb waits for the inbox's lock.
	VerbLockWait = 30 * time.Second
	// lookLockWait is how long a verb waits that only shows something. It needs the
	// lock only to move entries that have come due.
	lookLockWait = time.Second
)

// InboxFlags are what every verb about an inbox has.
type InboxFlags struct {
	Inbox string
	JSON  bool
	Adopt bool // trust state that was not written on this machine
	Stay  bool // do not become the owner: the verb writes elsewhere
}

// Add declares the flags.
func (i *InboxFlags) Add(f *pflag.FlagSet) {
	AddInbox(f, &i.Inbox)
	f.BoolVar(&i.JSON, "json", false, "print JSON, one object a line")
}

// Open opens the inbox for a verb that changes it.
func (i *InboxFlags) Open() (*inbox.Inbox, error) {
	box, err := OpenAsOwner(i.Inbox, inbox.Options{LockWait: VerbLockWait, Adopt: i.Adopt})
	return box, orInit(err)
}

// orInit says also how an inbox comes to be found.
func orInit(err error) error {
	if errors.Is(err, ErrNoInbox) {
		return usageError{fmt.Errorf("%w, or have heartbeat init make one for this project", err)}
	}
	return err
}

// Look opens the inbox for a verb that only shows it. It first moves scheduled entries
// that have come due to the inbox, and notes if that fails.
func (i *InboxFlags) Look(s Streams) (*inbox.Inbox, error) {
	open := OpenAsOwner
	if i.Stay {
		open = OpenInbox
	}
	box, err := open(i.Inbox, inbox.Options{LockWait: lookLockWait})
	if err != nil {
		return nil, orInit(err)
	}
	warnings, err := box.MoveForeignAside(context.Background())
	s.Warn(warnings)
	if err != nil {
		s.Note("%v", err)
	}
	if err := box.Promote(context.Background()); err != nil {
		s.Note("what is scheduled and due waits on: %v", err)
	}
	return box, nil
}

// PrintJSON writes one line.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Print prints v with --json, and otherwise the sentence.
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

// InboxVariable names the inbox where no flag does.
const InboxVariable = "HEARTBEAT_INBOX"

// LaunchedVariable names, in a session that heartbeat-launch manages, the inbox
// that it wired a hook for: an absolute path.
const LaunchedVariable = "HEARTBEAT_LAUNCHED"

// DefaultSettle is how long a last line without newline must stay unchanged to count
// as an entry.
const DefaultSettle = 250 * time.Millisecond

// WatchPoll is how often a waiting command looks at the inbox if it gets no file events.
const WatchPoll = time.Second

// NewFlags returns a set of flags that are listed in the order in which they are added.
func NewFlags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {} // errors get a sentence, not the whole help
	return f
}
