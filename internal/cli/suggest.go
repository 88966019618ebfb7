package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// UnknownVerb returns the error for an unknown verb. It suggests the verb that was probably meant.
func UnknownVerb(name string, known []string) error {
	if near := Nearest(name, known); near != "" {
		return fmt.Errorf("unknown verb %q: did you mean %s?", name, near)
	}
	return fmt.Errorf("unknown verb %q: it is one of %s", name, strings.Join(known, ", "))
}

// FlagError turns an error from parsing flags into a usage error. For an unknown flag it suggests
// the one that was probably meant. nil stays nil.
func FlagError(err error, flags *pflag.FlagSet) error {
	if err == nil {
		return nil
	}
	var invalid *pflag.InvalidValueError
	var refused refusal
	if errors.As(err, &invalid) && errors.As(err, &refused) {
		return usageError{errors.New(refused.of(invalid.GetFlag().Name))}
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		flags.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := Nearest(unknown.GetSpecifiedName(), names); near != "" {
			err = fmt.Errorf("%w: did you mean --%s?", err, near)
		}
	}
	return usageError{err}
}

// Nearest returns the known word that was probably meant, or "". It prefers the closest word within
// one edit (up to a third of the letters of a long word), then a word that begins with the typed
// one.
func Nearest(typed string, known []string) (nearest string) {
	if typed == "" {
		return ""
	}
	best := 1 + max(1, len(typed)/3)
	for _, word := range known {
		if d := distance(typed, word); d < best {
			best, nearest = d, word
		}
	}
	if nearest != "" || len(typed) < 3 {
		return nearest
	}
	for _, word := range known {
		if strings.HasPrefix(word, typed) {
			return word
		}
	}
	return ""
}

// distance counts the letters to add, drop, change or swap with the next one to turn one word into the other.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// VerbNames are heartbeat's verbs in the order of its help. The hook knows only these names and
// links none of the verbs' code.
var VerbNames = []string{
	"send", "ask", "results", "check", "status", "costs", "peek", "log", "metrics", "notify", "watch", "mcp",
	"pause", "resume", "stop", "cancel", "attach",
	"recover", "dead-letter", "compact", "fsck",
	"run", "orchestrate", "result", "breakpoint",
	"init", "install", "uninstall", "doctor",
	"demo", "completion", "version", "man", "help",
}
