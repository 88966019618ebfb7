package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// NotifyFlags say by which command a person is told of what needs one. They are shared
// by everything that works on an inbox.
type NotifyFlags struct {
	Command string
	Stall   Span // how long nothing may move, 0 for any time
	Drained bool
}

// Add declares --notify and --notify-drained.
func (n *NotifyFlags) Add(f *pflag.FlagSet) {
	f.StringVar(&n.Command, "notify", "", "run this `command` once for each thing that needs a person, with one JSON object on its stdin: see heartbeat notify --help")
	f.BoolVar(&n.Drained, "notify-drained", false, "with --notify: tell also that nothing waits any more")
}

// AddStall declares --stall.
func (n *NotifyFlags) AddStall(f *pflag.FlagSet) {
	f.Var(&n.Stall, "stall", "with --notify: tell also that an entry waits or is in flight and nothing has happened for so long (0: never)")
}

// Check refuses flags that cannot be meant.
func (n *NotifyFlags) Check(f *pflag.FlagSet) error {
	switch {
	case f.Changed("notify"):
		return CheckNotify(n.Command)
	case n.Drained:
		return errors.New("--notify-drained says when to run the command of --notify: name one")
	case n.Stall > 0:
		return errors.New("--stall says when to run the command of --notify: name one")
	}
	return nil
}

// CheckNotify refuses a command line that cannot be meant. The command runs in the root
// folder, so that no folder of an agent's decides what a name in it means.
func CheckNotify(command string) error {
	first, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	switch {
	case first == "":
		return errors.New("--notify is empty: give a command, as in --notify /usr/local/bin/tell-me")
	case strings.ContainsRune(command, 0):
		return errors.New("--notify has a NUL byte, and no command has one")
	case isRelative(first):
		return fmt.Errorf("--notify %s: the command runs in the root folder: name it by its whole path", first)
	}
	return nil
}

// isRelative recognises a plain path that is not absolute. What a shell would change
// first (~, $HOME, quotes) is left to the shell.
func isRelative(word string) bool {
	plain := strings.IndexFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+/", r))
	}) < 0
	return plain && strings.Contains(word, "/") && word[0] != '/'
}
