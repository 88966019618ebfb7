// Package effect is the little that a program has to know of babysitter runs to tell
// an entry of a run from any other, to offer the options that say how runs are
// driven, and to read how babysitter's command is to be called.
//
// It runs nothing, and links neither babysitter's files nor its schemas, so a hook that has
// no run to drive stays small. Everything else about runs is in package orchestrate.
package effect

import (
	"encoding/json"
	"fmt"
	"strings"

	"heartbeat/inbox"
)

// The members of an entry's metadata that mark it as a run's.
const (
	MetaRun       = "run"           // the run's id
	MetaRunDir    = "run_dir"       // its directory, absolute
	MetaEffect    = "effect"        // the effect's id; absent from an entry about the run itself
	MetaKind      = "kind"          // the effect's kind, or what the entry says about the run
	MetaStep      = "step"          // the step of the process that asked for the effect
	MetaTimeLimit = "time_limit_ms" // how long the entry may be in flight, in milliseconds
)

// Mark is what an entry's metadata says about the run that the entry is for.
type Mark struct {
	RunDir string // absolute
	Effect string // "" for an entry about the run itself: its failure, or its end
	Kind   string
}

// MarkIn reads the mark in an entry's metadata. The second result is false where the
// entry is not a run's.
func MarkIn(metadata map[string]json.RawMessage) (Mark, bool) {
	m := Mark{RunDir: text(metadata[MetaRunDir]), Effect: text(metadata[MetaEffect]), Kind: text(metadata[MetaKind])}
	return m, m.RunDir != ""
}

// MarkOf reads the mark of an entry in flight, as [MarkIn] does. d may be nil.
func MarkOf(d *inbox.Delivery) (Mark, bool) {
	if d == nil {
		return Mark{}, false
	}
	return MarkIn(d.Metadata())
}

// Text is what the agent reads of an entry: the entry's text, after a reminder where the
// entry is an effect's and is delivered a second time or later.
func Text(e inbox.Entry) string {
	m, ok := MarkIn(e.Metadata)
	if e.Attempt < 2 || !ok || m.Effect == "" {
		return e.Text
	}
	return fmt.Sprintf("This is asked again (attempt %d), since effect %s has no result yet: none was handed over with the command below. "+
		"If the work is done already, only hand its result over.\n\n%s", e.Attempt, m.Effect, e.Text)
}

// IDIn is the effect's id in what a person or an agent typed: the id itself, or the id
// of the effect's entry, such as "run/effect#2".
func IDIn(name string) string {
	if _, rest, found := strings.Cut(name, "/"); found {
		name = rest
	}
	name, _, _ = strings.Cut(name, "#")
	return name
}

// text is "" for anything that is not a JSON string.
func text(raw json.RawMessage) (s string) {
	if len(raw) > 0 { // as for most entries
		_ = json.Unmarshal(raw, &s)
	}
	return s
}
