package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/host/rights"
)

// ErrNoInbox says that no inbox was named.
var ErrNoInbox = errors.New("no inbox: name it with --inbox PATH or in " + InboxVariable)

// AddInbox declares --inbox.
func AddInbox(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "inbox", os.Getenv(InboxVariable), "`path` of the JSONL inbox (also "+InboxVariable+")")
	f.Lookup("inbox").DefValue = ""
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
	if errors.Is(err, ErrNoInbox) {
		return nil, usageError{err}
	}
	return box, err
}

// Look opens the inbox for a verb that only shows it. It first moves scheduled entries
// that have come due to the inbox, and notes if that fails.
func (i *InboxFlags) Look(s Streams) (*inbox.Inbox, error) {
	open := OpenAsOwner
	if i.Stay {
		open = OpenInbox
	}
	box, err := open(i.Inbox, inbox.Options{LockWait: lookLockWait})
	if errors.Is(err, ErrNoInbox) {
		return nil, usageError{err}
	}
	if err != nil {
		return nil, err
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
