package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Verb is a subcommand. Its flags are bound when they are built, so that help,
// completion and the run itself see the same ones.
type Verb struct {
	Name    string
	Args    string   // what follows the flags, for the usage line
	Words   []string // what the first of args may be, for completion
	IDs     string   // what the others of args name: "entries", "waiting", "letters", or nothing
	Short   string
	Long    string
	Example string
	Build   func() (*pflag.FlagSet, Action)
}

// Action runs a verb whose flags are parsed.
type Action func(args []string, s Streams) error

// Usage marks a mistake in how the command was called: the help is named with it.
func Usage(err error) error { return usageError{err} }

type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// Status ends a verb with an exit status of its own.
func Status(status int, err error) error { return statusError{status, err} }

type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

// Built is the verb with its flags, --help among them.
func (v Verb) Built() (flags *pflag.FlagSet, help *bool, act Action) {
	flags, act = v.Build()
	return flags, flags.BoolP("help", "h", false, "show this help"), act
}

// Run parses the flags, runs the verb, and says what went wrong.
func (v Verb) Run(args []string, s Streams) int {
	flags, help, act := v.Built()
	err := flags.Parse(args)
	if err != nil {
		err = usageError{err}
	}
	if err == nil && *help {
		fmt.Fprint(s.Out, v.Page(s.Command, flags).Help())
		return ExitOK
	}
	if err == nil {
		err = act(flags.Args(), s)
	}
	var usage usageError
	var other statusError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &other):
		s.Complain(err)
		return other.status
	case errors.As(err, &usage):
		s.Complain(fmt.Errorf("%w (see %s %s --help)", err, s.Command, v.Name))
	default:
		s.Complain(err)
	}
	return ExitError
}

// NoArgs refuses arguments that a verb does not take.
func NoArgs(args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", args[0])}
	}
	return nil
}
