package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/host/rights"
	"heartbeat/orchestrate"
	recovery "heartbeat/recover"
)

// What the flags of all commands share goes by short names here.
type span = cli.Span

func newFlags(name string) *pflag.FlagSet { return cli.NewFlags(name) }

var errNoInbox = errors.New("no inbox: name it with --inbox PATH or in " + cli.InboxVariable)

func addInbox(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "inbox", os.Getenv(cli.InboxVariable), "path of the JSONL inbox (also "+cli.InboxVariable+")")
	f.Lookup("inbox").DefValue = ""
}

// openAsOwner is openInbox for a verb: root becomes the owner of the inbox's
// directory before any file in it is opened.
func openAsOwner(path string, o inbox.Options) (*inbox.Inbox, error) {
	if path == "" {
		return nil, errNoInbox
	}
	owner, err := rights.BecomeOwner(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	box, err := openInbox(path, o)
	if err != nil && owner != "" {
		err = fmt.Errorf("as %s, whose directory it is: %w", owner, err)
	}
	return box, err
}

func openInbox(path string, o inbox.Options) (*inbox.Inbox, error) {
	if path == "" {
		return nil, errNoInbox
	}
	return inbox.Open(path, o)
}

// orphanFlags are the settings of recovery, shared by the hook and recover.
type orphanFlags struct {
	policy      string
	maxAttempts int
	// given says that somebody chose the policy.
	given bool
}

func (o *orphanFlags) add(f *pflag.FlagSet) {
	o.policy = string(recovery.DeadLetter)
	policies := []string{string(recovery.DeadLetter), string(recovery.Retry), string(recovery.Drop)}
	f.Var(cli.Choice(&o.policy, policies...), "on-orphan", "what becomes of an entry whose session ended without answering it (of a run's: retry, unless this is given)")
	f.IntVar(&o.maxAttempts, "max-attempts", recovery.DefaultMaxAttempts, "deliveries of one entry before retry gives up on it")
}

func (o *orphanFlags) check() error {
	if o.maxAttempts < 1 {
		return fmt.Errorf("--max-attempts is %d: it must be 1 or more", o.maxAttempts)
	}
	return nil
}

func (o *orphanFlags) options() recovery.Options {
	all := recovery.Options{Policy: recovery.Policy(o.policy), MaxAttempts: o.maxAttempts}
	if !o.given {
		all.PolicyOf = orchestrate.PolicyOf
	}
	return all
}
