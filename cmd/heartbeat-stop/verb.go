package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// verb is a subcommand. Its flags are bound when they are built, so that help,
// completion and the run itself see the same ones.
type verb struct {
	name    string
	args    string   // what follows the flags, for the usage line
	words   []string // what the first of args may be, for completion
	ids     string   // what the others of args name: entryIDs, waitingIDs, letterIDs, or nothing
	short   string
	long    string
	example string
	build   func() (*pflag.FlagSet, action)
}

// action runs a verb whose flags are parsed.
type action func(args []string, s streams) error

// verbs is a function, not a variable: a variable would be set up at every turn.
func verbs() []verb {
	list := []verb{
		sendVerb(), cancelVerb(), resultsVerb(),
		statusVerb(), peekVerb(), logVerb(), metricsVerb(),
		pauseVerb(), resumeVerb(), recoverVerb(),
		deadLetterVerb(), compactVerb(),
		runsVerb(), orchestrateVerb(), resultVerb(), breakpointVerb(),
		installVerb(), uninstallVerb(), doctorVerb(),
		demoVerb(), completionVerb(), versionVerb(),
	}
	return append(list, manVerb(list))
}

// usageError is a mistake in how the command was called.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// statusError ends a verb with a status of its own.
type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

func runVerb(name string, args []string, s streams) int {
	s.out, s.err = words.OnScreen(s.out, isTerminal), words.OnScreen(s.err, isTerminal)
	if name == idsCommand {
		printIDs(args, s)
		return exitOK
	}
	v, err := findVerb(name)
	if err != nil {
		s.complain(fmt.Errorf("%w (see heartbeat-stop --help)", err))
		return exitError
	}
	return v.run(args, s)
}

func findVerb(name string) (verb, error) {
	list := verbs()
	for _, v := range list {
		if v.name == name {
			return v, nil
		}
	}
	return verb{}, fmt.Errorf("unknown verb %q: it is one of %s", name, strings.Join(verbNames(list), ", "))
}

func verbNames(list []verb) (names []string) {
	for _, v := range list {
		names = append(names, v.name)
	}
	return names
}

// built is the verb with its flags, --help among them.
func (v verb) built() (flags *pflag.FlagSet, help *bool, act action) {
	flags, act = v.build()
	return flags, flags.BoolP("help", "h", false, "show this help"), act
}

func (v verb) run(args []string, s streams) int {
	flags, help, act := v.built()
	err := flags.Parse(args)
	if err != nil {
		err = usageError{err}
	}
	if err == nil && *help {
		fmt.Fprint(s.out, v.page(flags).Help())
		return exitOK
	}
	if err == nil {
		err = act(flags.Args(), s)
	}
	var usage usageError
	var other statusError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &other):
		s.complain(err)
		return other.status
	case errors.As(err, &usage):
		s.complain(fmt.Errorf("%w (see heartbeat-stop %s --help)", err, v.name))
	default:
		s.complain(err)
	}
	return exitError
}

func noArgs(args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", args[0])}
	}
	return nil
}

const (
	// verbLockWait is how long a verb waits for the inbox's lock.
	verbLockWait = 30 * time.Second
	// lookLockWait is how long one does that only shows something, and needs the
	// lock for nothing but what has come due.
	lookLockWait = time.Second
)

// inboxFlags are what every verb about an inbox has.
type inboxFlags struct {
	inbox string
	json  bool
	adopt bool // what was not written here is taken for ours
	stay  bool // root stays root, for what it writes elsewhere
}

func (i *inboxFlags) add(f *pflag.FlagSet) {
	addInbox(f, &i.inbox)
	f.BoolVar(&i.json, "json", false, "print JSON, one object a line")
}

func (i *inboxFlags) open() (*inbox.Inbox, error) {
	box, err := openAsOwner(i.inbox, inbox.Options{LockWait: verbLockWait, Adopt: i.adopt})
	if errors.Is(err, errNoInbox) {
		return nil, usageError{err}
	}
	return box, err
}

// look opens the inbox for a verb that only shows it. Scheduled entries that have
// come due are moved to the inbox first; where that cannot be done, it says so.
func (i *inboxFlags) look(s streams) (*inbox.Inbox, error) {
	open := openAsOwner
	if i.stay {
		open = openInbox
	}
	box, err := open(i.inbox, inbox.Options{LockWait: lookLockWait})
	if errors.Is(err, errNoInbox) {
		return nil, usageError{err}
	}
	if err != nil {
		return nil, err
	}
	warnings, err := box.Believe(context.Background())
	s.warn(warnings)
	if err != nil {
		s.note("%v", err)
	}
	if err := box.Promote(context.Background()); err != nil {
		s.note("what is scheduled and due waits on: %v", err)
	}
	return box, nil
}

// warn says what was found and mended besides.
func (s streams) warn(warnings []string) {
	for _, w := range warnings {
		s.note("%s", w)
	}
}

// printJSON writes one line.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// print shows v as JSON, or else the sentence.
func (i *inboxFlags) print(s streams, v any, sentence string) error {
	if !i.json {
		_, err := fmt.Fprintln(s.out, sentence)
		return err
	}
	return printJSON(s.out, v)
}
