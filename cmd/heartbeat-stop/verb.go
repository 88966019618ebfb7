package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
)

// verb is a subcommand. Its flags are bound when they are built, so that help,
// completion and the run itself see the same ones.
type verb struct {
	name    string
	args    string // what follows the flags, for the usage line
	short   string
	long    string
	example string
	build   func() (*pflag.FlagSet, action)
}

// action runs a verb whose flags are parsed.
type action func(args []string, s streams) error

// verbs is a function, not a variable: a variable would be set up at every turn.
func verbs() []verb {
	return []verb{
		recoverVerb(), sendVerb(), installVerb(), uninstallVerb(), demoVerb(), completionVerb(), versionVerb(),
	}
}

// usageError is a mistake in how the command was called.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func runVerb(name string, args []string, s streams) int {
	for _, v := range verbs() {
		if v.name == name {
			return v.run(args, s)
		}
	}
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	s.complain(fmt.Errorf("unknown verb %q: it is one of %s (see heartbeat-stop --help)", name, strings.Join(names, ", ")))
	return exitError
}

func (v verb) run(args []string, s streams) int {
	flags, act := v.build()
	help := flags.BoolP("help", "h", false, "show this help")
	err := flags.Parse(args)
	if err != nil {
		err = usageError{err}
	}
	if err == nil && *help {
		fmt.Fprint(s.out, v.help(flags))
		return exitOK
	}
	if err == nil {
		err = act(flags.Args(), s)
	}
	var usage usageError
	switch {
	case err == nil:
		return exitOK
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

// verbLockWait is how long a verb waits for the inbox's lock.
const verbLockWait = 30 * time.Second

// inboxFlags are what every verb about an inbox has.
type inboxFlags struct {
	inbox string
	json  bool
}

func (i *inboxFlags) add(f *pflag.FlagSet) {
	addInbox(f, &i.inbox)
	f.BoolVar(&i.json, "json", false, "print one JSON object")
}

func (i *inboxFlags) open() (*inbox.Inbox, error) {
	box, err := openInbox(i.inbox, verbLockWait)
	if errors.Is(err, errNoInbox) {
		return nil, usageError{err}
	}
	return box, err
}

// print shows v as JSON, or else the sentence.
func (i *inboxFlags) print(s streams, v any, sentence string) error {
	if !i.json {
		_, err := fmt.Fprintln(s.out, sentence)
		return err
	}
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
