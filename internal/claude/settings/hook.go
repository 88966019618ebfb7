package settings

import (
	"path/filepath"
	"slices"
	"strings"
)

// hookName is the base name of the hook binary, of heartbeat and of heartbeat-rs.
const hookName = "heartbeat-stop"

// Hook is one entry of a "hooks" array as it is in the settings file.
type Hook struct {
	Type    string
	Command string
	// Args are the arguments in exec form. Nil means shell form, in which Command is a line for /bin/sh.
	Args []string
}

// Ours reports whether h is a heartbeat hook for inbox that Install could have written: a command hook in exec form
// whose binary is named heartbeat-stop, or has the base name of command (which may be empty), and whose arguments name
// this inbox. A hook in shell form is never ours.
func Ours(h Hook, inbox, command string) bool {
	return relate(h, inbox, command) == ours
}

// relation is what a hook has to do with an inbox.
type relation uint8

const (
	foreign  relation = iota // not heartbeat's
	ours                     // exec form, this inbox
	neighbor                 // exec form, another inbox
	clash                    // this inbox, but not in the form we write
	unclear                  // perhaps this inbox: it names a relative path, a shell variable or no inbox
)

func relate(h Hook, inbox, command string) relation {
	if h.Type != "command" {
		return foreign
	}
	if h.Args == nil || !isHeartbeat(h.Command, command) {
		return relateLine(h, inbox, command)
	}
	named, _ := inboxFlag(h.Args)
	switch compareInbox(named, inbox) {
	case same:
		return ours
	case another:
		return neighbor
	}
	return unclear
}

// relateLine judges a hook that reaches heartbeat-stop, if at all, through a shell or another program.
func relateLine(h Hook, inbox, command string) relation {
	words, at := mention(h, command)
	if at < 0 {
		return foreign
	}
	named, ok := inboxFlag(words[at+1:])
	if !ok && at > 0 {
		return foreign // the name occurs, but not as a program: tail /var/log/heartbeat-stop
	}
	switch compareInbox(named, inbox) {
	case same:
		return clash
	case another:
		return foreign
	}
	return unclear
}

// mention returns the words of a hook that is in shell form or starts another program, and the index of the word that
// names heartbeat's hook binary, or -1.
func mention(h Hook, command string) (words []string, at int) {
	words = h.Args
	if h.Args == nil {
		words = shellWords(h.Command)
	}
	words = slices.Clone(words)
	for i := 0; i < len(words); {
		if !strings.ContainsAny(words[i], " \t\r\n") {
			i++
			continue
		}
		// A line within the line, as after sh -c. Each pass removes blanks or quotes, so this ends.
		words = slices.Replace(words, i, i+1, shellWords(words[i])...)
	}
	return words, slices.IndexFunc(words, func(word string) bool { return isHeartbeat(word, command) })
}

// isHeartbeat reports whether path has the name of heartbeat's hook binary.
func isHeartbeat(path, command string) bool {
	base := filepath.Base(path)
	return base == hookName || command != "" && base == filepath.Base(command)
}

// likeness is whether two spellings of a path name the same file.
type likeness uint8

const (
	another likeness = iota
	same
	untold // one is relative, or contains a variable or ~
)

// compareInbox compares the inbox that a hook names with the absolute path of ours.
func compareInbox(named, inbox string) likeness {
	base := filepath.Base(named)
	variable := func(path string) bool { return strings.ContainsAny(path, "$`") }
	switch {
	case named == "":
		return untold
	case filepath.Clean(named) == filepath.Clean(inbox):
		return same
	case filepath.IsAbs(named) && !variable(named):
		return another
	case variable(base) || base == filepath.Base(inbox):
		return untold
	}
	return another // the last element is known, and it differs
}
