package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/check"
	recovery "heartbeat/recover"
)

// checks is the value of a flag that adds a check.
type checks struct {
	to    *check.Set
	parse func(string) (check.Command, error)
	named bool
}

func (c checks) Set(text string) error {
	added, err := c.parse(text)
	if err != nil {
		return err
	}
	if slices.Contains(c.to.Names(), added.Name) {
		return fmt.Errorf("there is a check %q already", added.Name)
	}
	c.to.Commands = append(c.to.Commands, added)
	return nil
}

// GetSlice, Append and Replace mark the flag as repeatable.
func (c checks) GetSlice() (texts []string) {
	for _, command := range c.to.Commands {
		switch {
		case c.named && command.Name != check.Default:
			texts = append(texts, command.Name+"="+command.Line)
		case !c.named && command.Name == check.Default:
			texts = append(texts, command.Line)
		}
	}
	return texts
}

func (c checks) Append(text string) error { return c.Set(text) }
func (c checks) Replace([]string) error   { return errors.New("it cannot be replaced") }
func (c checks) String() string           { return strings.Join(c.GetSlice(), " ") }
func (c checks) Type() string             { return "command" }

// AddChecks declares the flags for the commands that decide whether an entry is answered.
func AddChecks(f *pflag.FlagSet, s *recovery.Settings) {
	s.Checks = &check.Set{Timeout: check.DefaultTimeout, Tries: check.DefaultTries}
	unnamed := func(line string) (check.Command, error) {
		if strings.TrimSpace(line) == "" {
			return check.Command{}, errors.New("it is empty: name a command, such as 'make test', or leave the flag out")
		}
		return check.Command{Name: check.Default, Line: line}, nil
	}
	f.Var(checks{s.Checks, unnamed, false}, "check", "run this `command` after each entry's turn: the entry is answered once it exits with 0")
	f.Var(checks{s.Checks, check.Parse, true}, "check-named", "a check for entries that ask for it by its name, as in tests='make test' (may be repeated)")
	f.Var((*Span)(&s.Checks.Timeout), "check-timeout", "how long one check may take (0: 10m)")
	f.Var(AtLeast(&s.Checks.Tries, 1), "check-tries", "how often the work on an entry is checked in one delivery, before it is set aside")
	f.BoolVar(&s.Checks.Optional, "check-none", false, "let an entry ask for no check")
}

// CheckArguments returns the flags that give another command the same checks.
func CheckArguments(s *check.Set) []string {
	if s == nil || len(s.Commands) == 0 {
		return nil
	}
	var same recovery.Settings
	f := NewFlags("checks")
	AddChecks(f, &same)
	*same.Checks = *s
	return spellAll(f)
}
