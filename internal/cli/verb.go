// Package cli holds what heartbeat's commands share: verbs, flags, help, manual pages and the version line.
package cli

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// Verb is a subcommand. Build declares its flags, so that help, completion and the verb itself use the same ones.
type Verb struct {
	Name    string
	Args    string // what follows the flags in the usage line; without it, arguments are refused
	IDs     string // what the arguments name: "entries", "waiting", "letters", "sessions", or nothing
	Short   string
	Long    string
	Example string
	// Verbs are subverbs, such as list and purge of dead-letter. Build, if set, is the verb without one.
	Verbs []Verb
	Build func(*pflag.FlagSet) Action
}

// Action runs a verb after its flags were parsed.
type Action func(args []string, s Streams) error

// Usage marks an error in how the command was called: the message then points to the help.
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

// Silent returns an error that ends a verb with this exit status and prints nothing, because the reader was told why.
func Silent(status int) error { return toldError(status) }

type toldError int

func (t toldError) Error() string { return fmt.Sprintf("exit status %d", int(t)) }

// Conclude prints a verb's error, if any, and returns the exit status. path is the verb as typed: heartbeat send.
func Conclude(err error, path string, s Streams) int {
	var usage usageError
	var other statusError
	var told toldError
	var by EndedBy
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &told):
		return int(told)
	case errors.As(err, &other):
		s.Complain(err)
		return other.status
	case errors.As(err, &by):
		s.Complain(err)
		return by.Status()
	case errors.As(err, &usage):
		s.Complain(fmt.Errorf("%w (see %s --help)", err, path))
	default:
		s.Complain(err)
	}
	return ExitError
}

// Verbs runs a heartbeat verb in this process and returns its exit status, for commands that do what the verb does.
type Verbs func(args []string, s Streams) int

// Outcome turns the status and stderr of such a run into an error, nil on success.
func Outcome(verb string, status int, complaint string) error {
	switch why := strings.TrimPrefix(strings.TrimSpace(complaint), "heartbeat: "); {
	case status == ExitOK:
		return nil
	case why != "":
		return errors.New(why)
	}
	return fmt.Errorf("heartbeat %s ended with status %d", verb, status)
}

// NoArgs refuses arguments to a verb that takes none.
func NoArgs(args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %.200q", args[0])}
	}
	return nil
}

// EndedBy is the error of a wait that a signal ended. A verb that returns it ends with the status of [EndedBy.Status].
type EndedBy struct{ syscall.Signal }

// Error names the signal.
func (e EndedBy) Error() string { return "ended by " + e.Signal.String() }

// Status returns the exit status that a shell reports for the signal.
func (e EndedBy) Status() int { return 128 + int(e.Signal) }
