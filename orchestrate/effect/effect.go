// Package effect has the little that a program without runs needs of them: to tell a run's entry from any other, to
// offer the options that say how runs are driven, and to parse babysitter's command.
//
// It runs nothing, and links neither babysitter's files nor its schemas, so a hook that has no run to drive stays
// small. Everything else about runs is in package orchestrate.
package effect

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-shellwords"

	"heartbeat/inbox"
)

// Members of an entry's metadata that mark it as a run's.
const (
	MetaRun       = "run"           // the run's id
	MetaRunDir    = "run_dir"       // its directory, absolute
	MetaEffect    = "effect"        // the effect's id; absent from an entry about the run itself
	MetaKind      = "kind"          // the effect's kind, or what the entry says about the run
	MetaStep      = "step"          // the step of the process that asked for the effect
	MetaTimeLimit = "time_limit_ms" // how long the entry may be in flight, in milliseconds
)

// Mark is what an entry's metadata says about its run.
type Mark struct {
	Run, RunDir string // its id, and its directory, absolute
	Effect      string // "" for an entry about the run itself: its failure, or its end
	Kind        string
}

// MarkIn returns the mark in an entry's metadata, and whether the entry is a run's.
func MarkIn(metadata map[string]json.RawMessage) (Mark, bool) {
	m := Mark{Run: text(metadata[MetaRun]), RunDir: text(metadata[MetaRunDir]), Effect: text(metadata[MetaEffect]), Kind: text(metadata[MetaKind])}
	return m, m.RunDir != ""
}

// MarkOf is [MarkIn] for an entry in flight; nil is none.
func MarkOf(d *inbox.Delivery) (Mark, bool) {
	if d == nil {
		return Mark{}, false
	}
	return MarkIn(d.Metadata())
}

// Text returns what the agent reads of an entry: its text, after a reminder if an effect's entry is delivered again.
func Text(e inbox.Entry) string {
	m, ok := MarkIn(e.Metadata)
	if e.Attempt < 2 || !ok || m.Effect == "" {
		return e.Text
	}
	return fmt.Sprintf("This is asked again (attempt %d), since effect %s has no result yet: none was handed over with the command below. "+
		"If the work is done already, only hand its result over.\n\n%s", e.Attempt, m.Effect, e.Text)
}

// IDIn returns the effect's id in what a person typed: that id, or the id of its entry, such as "run/effect#2".
func IDIn(name string) string {
	if _, rest, found := strings.Cut(name, "/"); found {
		name = rest
	}
	name, _, _ = strings.Cut(name, "#")
	return name
}

// text returns "" for anything that is not a JSON string.
func text(raw json.RawMessage) (s string) {
	if len(raw) > 0 { // empty for most entries
		_ = json.Unmarshal(raw, &s)
	}
	return s
}

// Breakpoints says what happens to a run's question to a person.
type Breakpoints string

const (
	// Ask has the agent ask its person.
	Ask Breakpoints = "ask"
	// Hold waits until somebody answers the question.
	Hold Breakpoints = "hold"
	// Reject answers that it was not approved.
	Reject Breakpoints = "reject"
)

// Unresolved says what happens to an effect whose entry was set aside.
type Unresolved string

const (
	// PostError tells the process, which may catch the error.
	PostError Unresolved = "post-error"
	// Leave waits for a person, who requeues the dead letter or posts a result.
	Leave Unresolved = "hold"
)

// Options say how a run is driven.
type Options struct {
	Breakpoints  Breakpoints `json:"breakpoints,omitempty"` // [Hold] if empty
	RejectReason string      `json:"reject_reason,omitempty"`
	OnUnresolved Unresolved  `json:"on_unresolved,omitempty"` // [Leave] if empty
	// Execute lists the kinds of effects that the step itself carries out: [Node], [Shell].
	Execute []string `json:"execute,omitempty"`
	// MaxSteps limits how often the process is run; 0 is no limit.
	MaxSteps int `json:"max_steps,omitempty"`
}

// Kinds of effects that a step can carry out itself, without the agent.
const (
	Node  = "node"
	Shell = "shell"
)

// Defaults for the options of a run.
const (
	DefaultBreakpoints  = Hold
	DefaultUnresolved   = Leave
	DefaultRejectReason = "nobody is there to approve it"
	DefaultMaxSteps     = 256 // times that the process is run
)

// CheckExecute returns an error that names the kinds that a step cannot carry out.
func CheckExecute(kinds []string) error {
	var unknown []string
	for _, kind := range kinds {
		if kind != Node && kind != Shell {
			unknown = append(unknown, fmt.Sprintf("%q", kind))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("only %s and %s can be carried out here, not %s", Node, Shell, strings.Join(unknown, ", "))
}

const (
	// MeasuredVersion is the version of the CLI whose behaviour heartbeat knows.
	MeasuredVersion = "0.0.187"
	// DefaultCommand calls babysitter if the user names no command.
	DefaultCommand = "babysitter"
	// Npx is the command that runs the CLI without installing it.
	Npx = "npx -y -p @a5c-ai/babysitter-sdk@" + MeasuredVersion + " babysitter"
	// Install is the command that installs the CLI.
	Install = "npm install -g @a5c-ai/babysitter-sdk@" + MeasuredVersion
)

// ParseCommand splits a command line for the CLI into words, as a shell does. A path with blanks is quoted, or is
// the whole line and names an existing file. A program with a slash is a path, and is returned as an absolute one.
func ParseCommand(line string) (words []string, err error) {
	if info, err := os.Stat(line); err == nil && info.Mode().IsRegular() && isPath(line) {
		words = []string{line}
	} else {
		parser := shellwords.NewParser()
		words, err = parser.Parse(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the command of babysitter %q cannot be read: %w", line, err)
		case parser.Position >= 0:
			return nil, fmt.Errorf("the command of babysitter %q is shell script: name a program and its arguments, or a script file", line)
		case len(words) == 0:
			return nil, errors.New("the command of babysitter is empty")
		}
	}
	if isPath(words[0]) {
		if words[0], err = filepath.Abs(words[0]); err != nil {
			return nil, fmt.Errorf("find the babysitter CLI: %w", err)
		}
	}
	return words, nil
}

func isPath(program string) bool { return strings.ContainsRune(program, filepath.Separator) }
