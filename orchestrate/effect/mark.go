// Package effect is the little that a program needs to know of babysitter runs: to tell a run's entry from any
// other, to offer the options that say how runs are driven, and to parse babysitter's command.
//
// It runs nothing, and links neither babysitter's files nor its schemas, so a hook that has no run to drive stays
// small. Everything else about runs is in package orchestrate.
package effect

import (
	"encoding/json"
	"fmt"
	"strings"

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
	RunDir string // absolute
	Effect string // "" for an entry about the run itself: its failure, or its end
	Kind   string
}

// MarkIn reads the mark in an entry's metadata. The second result is false if the entry is not a run's.
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

// Text returns what the agent reads of an entry: its text, after a reminder if an effect's entry comes again.
func Text(e inbox.Entry) string {
	m, ok := MarkIn(e.Metadata)
	if e.Attempt < 2 || !ok || m.Effect == "" {
		return e.Text
	}
	return fmt.Sprintf("This is asked again (attempt %d), since effect %s has no result yet: none was handed over with the command below. "+
		"If the work is done already, only hand its result over.\n\n%s", e.Attempt, m.Effect, e.Text)
}

// IDIn returns the effect's id in what somebody typed: the id, or the id of its entry, such as "run/effect#2".
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
