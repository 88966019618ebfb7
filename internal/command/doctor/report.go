// Package doctor checks everything that a session with heartbeat's hook depends on, from the settings files to the
// file system. The checks write no file, take no lock and give no trust. Only [Fsck] may take the inbox's lock, to
// see one consistent state, and only [Repair] changes anything.
package doctor

import (
	"io"
	"slices"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/words"
)

// The states of a check.
const (
	OK   = "ok"
	Warn = "warn" // it works, with a drawback
	Fail = "fail" // work would be lost or stop
)

// Check is what one look found.
type Check struct {
	Name     string `json:"check"`
	State    string `json:"state"`
	Evidence string `json:"evidence"` // what was looked at, and what it says
	Fix      string `json:"fix"`      // a command or an edit; empty with OK

	mend mending
}

// Count counts the checks that are in one of these states.
func Count(all []Check, states ...string) (n int) {
	for _, c := range all {
		if slices.Contains(states, c.State) {
			n++
		}
	}
	return n
}

// Amiss returns the checks that are not ok.
func Amiss(all []Check) []Check {
	return slices.DeleteFunc(slices.Clone(all), func(c Check) bool { return c.State == OK })
}

// WriteText shows people each check, with its fix below.
func WriteText(out layout.Output, all []Check) error {
	t := layout.NewTable(layout.Column{Least: len(Fail), Style: stateStyle}, layout.Column{Least: len("environment")}, layout.Column{Text: true})
	for _, c := range all {
		t.Add(c.State, c.Name, c.Evidence)
		switch {
		case c.Fix == "":
		case isCommand(c.Fix):
			t.AddWhole("", "", "fix: "+c.Fix)
		default:
			t.Add("", "", "fix: "+c.Fix)
		}
	}
	return out.Table(t)
}

// isCommand reports whether a fix is a command, which is printed unbroken for copying.
func isCommand(fix string) bool {
	name, _, _ := strings.Cut(fix, " ")
	return slices.Contains([]string{"heartbeat", "chmod", "mkdir", "rm", "cp", "env"}, name)
}

func stateStyle(state string) layout.Style {
	switch state {
	case OK, Mended:
		return layout.Green
	case Warn:
		return layout.Yellow
	}
	return layout.Red
}

// WriteJSON prints each check as a JSON object on its own line.
func WriteJSON(w io.Writer, all []Check) error {
	for _, c := range all {
		if err := cli.PrintJSON(w, c); err != nil {
			return err
		}
	}
	return nil
}

func quote(line ...string) string { return words.Shell(line...) }
