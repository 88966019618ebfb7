package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Verb is a subcommand. Build makes its flags, so that help, completion and the verb
// itself use the same ones.
type Verb struct {
	Name    string
	Parent  string   // the verb that this one belongs to: dead-letter of requeue
	Args    string   // what follows the flags, for the usage line
	Words   []string // what the first of args may be, for completion
	IDs     string   // what the others of args name: "entries", "waiting", "letters", or nothing
	Short   string
	Long    string
	Example string
	// Verbs are its own verbs, such as list and purge of dead-letter. Where there are
	// any, Build is nil, and one of them has to be named.
	Verbs []Verb
	Build func() (*pflag.FlagSet, Action)
}

// Action runs a verb after its flags were parsed.
type Action func(args []string, s Streams) error

// Usage marks an error in how the command was called. The message then names the help.
func Usage(err error) error { return usageError{err} }

type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// Status returns an error that ends a verb with this exit status.
func Status(status int, err error) error { return statusError{status, err} }

type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

// Told returns an error that ends a verb with this exit status, where the verb itself
// has said why.
func Told(status int) error { return toldError(status) }

type toldError int

func (t toldError) Error() string { return fmt.Sprintf("exit status %d", int(t)) }

// Path is the verb as it is typed after the command: send, dead-letter requeue.
func (v Verb) Path() string {
	if v.Parent == "" {
		return v.Name
	}
	return v.Parent + " " + v.Name
}

// Built returns the verb's flags, including --help, and its action.
func (v Verb) Built() (flags *pflag.FlagSet, help *bool, act Action) {
	if v.Verbs != nil {
		flags = NewFlags(v.Name)
	} else {
		flags, act = v.Build()
	}
	return flags, flags.BoolP("help", "h", false, "show this help"), act
}

// Run parses the flags, runs the verb, and says what went wrong.
func (v Verb) Run(args []string, s Streams) int {
	if v.Verbs != nil {
		var status int
		if v, args, status = v.choose(args, s); v.Verbs != nil {
			return status
		}
	}
	flags, help, act := v.Built()
	err := FlagError(flags.Parse(args), flags)
	if err == nil && *help {
		return s.Show(v.Page(s.Command, flags).Help())
	}
	if err == nil {
		err = act(flags.Args(), s)
	}
	return v.conclude(err, s)
}

// conclude prints the error, if there is one, and returns the exit status.
func (v Verb) conclude(err error, s Streams) int {
	var usage usageError
	var other statusError
	var told toldError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &told):
		return int(told)
	case errors.As(err, &other):
		s.Complain(err)
		return other.status
	case errors.As(err, &usage):
		s.Complain(fmt.Errorf("%w (see %s %s --help)", err, s.Command, v.Path()))
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
