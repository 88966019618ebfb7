// Package check has the commands that decide whether the work on an entry is done: those that a wiring names, those that
// an entry asks for, and their outcome.
//
// The commands come from the wiring alone. An entry only names them, because whoever can write to the inbox must not be
// able to run a command.
package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
)

const (
	// Default is the name of the check for entries that name none.
	Default = "check"
	// None is the name with which an entry asks for no check.
	None = "none"

	// DefaultTimeout is how long one check may take. DefaultTries is how often one delivery is checked.
	DefaultTimeout = 10 * time.Minute
	DefaultTries   = 3
	Patience       = 30 * time.Minute // for how long a check that could not be run is tried again
)

// Command is a check of the wiring.
type Command struct {
	Name string
	Line string // for sh -c
}

// Set holds the checks of a wiring.
type Set struct {
	Commands []Command
	Timeout  time.Duration // of each
	Tries    int
	Optional bool // permits an entry to ask for none
}

// Names returns the names of the commands in order; a nil set has none.
func (s *Set) Names() (names []string) {
	if s == nil {
		return nil
	}
	for _, c := range s.Commands {
		names = append(names, c.Name)
	}
	return names
}

// For returns the names of the checks that an entry must pass. asked are those that it names, nil if it names none. The
// error names the checks that exist.
func (s *Set) For(asked []string) ([]string, error) {
	switch {
	case len(asked) == 0 && s.line(Default) == "":
		return nil, nil
	case len(asked) == 0:
		return []string{Default}, nil
	case len(asked) == 1 && asked[0] == None:
		if s.Optional || s.line(Default) == "" {
			return nil, nil
		}
		return nil, errors.New("the wiring checks each entry: none takes its --check-none")
	}
	for _, name := range asked {
		if s.line(name) == "" {
			return nil, Unknown(name, s.Names())
		}
	}
	return asked, nil
}

// Unknown returns the error for a name that no check has.
func Unknown(name string, known []string) error {
	if len(known) == 0 {
		return fmt.Errorf("there is no check %q: the wiring has none", name)
	}
	return fmt.Errorf("there is no check %q: the wiring has %s", name, strings.Join(known, ", "))
}

func (s *Set) line(name string) string {
	at := slices.IndexFunc(s.Commands, func(c Command) bool { return c.Name == name })
	if at < 0 {
		return ""
	}
	return s.Commands[at].Line
}

// Longest returns how long a hook may be busy with checks, 0 without checks.
func (s *Set) Longest() time.Duration {
	if s == nil || len(s.Commands) == 0 {
		return 0
	}
	return s.Timeout*time.Duration(len(s.Commands)) + Patience
}

// Parse reads NAME=COMMAND.
func Parse(text string) (Command, error) {
	name, line, found := strings.Cut(text, "=")
	if !found || strings.TrimSpace(line) == "" {
		return Command{}, errors.New("it takes NAME=COMMAND, such as tests='make test'")
	}
	if name == None {
		return Command{}, fmt.Errorf("no check can be named %q: an entry asks for no check by that name", None)
	}
	return Command{name, line}, inbox.CheckName(name)
}
