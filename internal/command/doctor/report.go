// Package doctor checks everything that a session with heartbeat's hook depends on, from the settings files to the
// file system. The checks write no file, take no lock and give no trust. Only [Fsck] may take the inbox's lock, to
// see one consistent state, and only [Repair] changes anything.
package doctor

import (
	"fmt"
	"slices"
	"strings"

	"heartbeat/internal/cli/layout"
	"heartbeat/internal/words"
)

// The states of a check.
const (
	OK   = "ok"
	Warn = "warn" // it works, with a drawback
	Fail = "fail" // work would be lost or stop
)

// Check is a finding, or the evidence that all is well.
type Check struct {
	Name     string `json:"check"`
	State    string `json:"state"` // "ok", "warn", "fail"; of "fsck --repair" also "mended"
	Evidence string `json:"evidence"`
	Fix      string `json:"fix"`

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
	t := layout.NewTable(layout.Column{Least: len(Fail), Style: func(state string) layout.Style { return stateStyles[state] }}, layout.Column{Least: len("environment")}, layout.Column{Text: true})
	for _, c := range all {
		t.Add(c.State, c.Name, c.Evidence)
		switch command, _, _ := strings.Cut(c.Fix, " "); {
		case c.Fix == "":
		case slices.Contains([]string{"heartbeat", "chmod", "mkdir", "rm", "cp", "env"}, command):
			t.AddWhole("", "", "fix: "+c.Fix) // unbroken, for copying
		default:
			t.Add("", "", "fix: "+c.Fix)
		}
	}
	return out.Table(t)
}

var stateStyles = map[string]layout.Style{OK: layout.Green, Mended: layout.Green, Warn: layout.Yellow, Fail: layout.Red}

func quote(line ...string) string { return words.Shell(line...) }

// scope is what a check belongs to, and what it needs.
type scope uint8

const (
	ofClaude scope = 1 << iota // sessions of Claude Code
	ofCodex                    // sessions of Codex
	ofFsck                     // the files beside an inbox: see [Fsck]
	ofBox                      // marks a check that needs to know the inbox
	// ofState marks a check that needs to read what is beside the inbox. If that cannot be read, another check tells why.
	ofState
	// ofWiring marks a check of what is wired for the project: none if the launcher wires it, or Codex lists no hooks.
	ofWiring
)

type row struct {
	id string
	of scope
	// about is what the check looks at, as docs/operate.md words it.
	about string
	// check adds findings by warn and fail. If it adds none, it returns the evidence that all is well, or "".
	check func(*examination) (well string)
}

// table returns all checks in the order in which they are shown.
func table() []row {
	const both = ofClaude | ofCodex
	return []row{
		{"troubles", both | ofBox | ofState, "what `status` says is wrong with the inbox", troubles},
		{"client", both, "the program is there, and its release has what heartbeat needs", clientRelease},
		{"settings", ofClaude, "all settings files can be read", settingsFiles},
		{"hooks-on", ofClaude, "no settings file keeps hooks from running", hooksOn},
		{"trust", both, "the folder is trusted; Codex trusts the hooks", trust},
		{"onboarding", ofClaude, "a session starts without questions", onboarding},
		{"environment", ofClaude, "no variables of another session, or of CI", environment},
		{"wired", both | ofWiring, "one hook of Stop, the plugin or the launcher serves the inbox", wired},
		{"events", both | ofBox | ofWiring, "the other events are wired as `install` wires them", events},
		{"others", both | ofBox | ofWiring, "no other inbox is wired for the project", others},
		{"binary", both | ofBox | ofWiring, "what the hooks start is there, and of this build", binary},
		{"flags", both | ofBox | ofWiring, "the hook takes its arguments", flags},
		{"timeout", both | ofBox | ofWiring, "no hook is ended while it waits for an entry", timeout},
		{"cap", ofClaude | ofWiring, "the client's cap on blocks in a row is lifted", blockCap},
		{"prices", both | ofBox, "the table of prices can be read, and fits what the client says", prices},
		{"directory", both | ofFsck | ofBox, "this user may work in the inbox's directory, and others may not", directory},
		{"inbox", both | ofFsck | ofBox, "the inbox is a file that only its user writes", inboxFile},
		{"state-files", both | ofFsck | ofBox, "owner, mode and kind of the files beside it", stateFiles},
		{"file-system", both | ofBox, "a local disk, writable, with space left", fileSystem},
		{"leftovers", both | ofFsck | ofBox | ofState, "no files of killed commands", leftovers},
		{"state", both | ofFsck | ofBox | ofState, "the state can be read, and is of this inbox", state},
		{"run", both | ofFsck | ofBox | ofState, "babysitter runs of the inbox can be read", runs},
		{"babysitter", both | ofBox, "its command is there, of a measured version", babysitters},
	}
}

// check makes the checks of a scope: ofClaude, ofCodex or ofFsck.
func (e *examination) check(which scope) {
	for _, r := range table() {
		if r.of&which == 0 || r.of&ofBox != 0 && e.inbox == "" || r.of&ofState != 0 && e.box == nil ||
			r.of&ofWiring != 0 && (e.Launched || e.Codex && (e.program.path == "" || e.program.err != nil)) {
			continue
		}
		e.id = r.id
		before := len(e.found)
		if well := r.check(e); well != "" && len(e.found) == before {
			e.note(OK, "", well)
		}
	}
}

func (e *examination) note(state, fix, evidence string) string {
	e.found = append(e.found, Check{Name: e.id, State: state, Evidence: evidence, Fix: fix})
	return ""
}

// warn returns "", as fail and unseen do: a check that found something has no evidence that all is well.
func (e *examination) warn(fix, format string, args ...any) string {
	return e.note(Warn, fix, fmt.Sprintf(format, args...))
}

func (e *examination) fail(fix, format string, args ...any) string {
	return e.note(Fail, fix, fmt.Sprintf(format, args...))
}

// unseen reports what could not be read.
func (e *examination) unseen(fix string, err error) string {
	return e.fail(fix, "could not be looked at: %v", err)
}
