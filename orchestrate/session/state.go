package session

import (
	"time"
)

// DefaultMaxIterations is the CLI's default limit.
const DefaultMaxIterations = 256

// State is the content of a state file.
type State struct {
	Active        bool
	Iteration     int    // counts from 1
	MaxIterations int    // 0 is no limit
	RunID         string // empty until a run is bound
	// StartedAt and LastIterationAt have the form of [Stamp]. A value read from a file is
	// kept as it is.
	StartedAt       string
	LastIterationAt string
	IterationTimes  []int // the last durations, in whole seconds, the newest last
	// Prompt is the person's prompt, without white space around it.
	Prompt string
}

// New is the state of a session at its start.
func New(runID, prompt string, maxIterations int, now time.Time) State {
	return State{
		Active:          true,
		Iteration:       1,
		MaxIterations:   maxIterations,
		RunID:           runID,
		StartedAt:       Stamp(now),
		LastIterationAt: Stamp(now),
		Prompt:          prompt,
	}
}

// Stamp formats a time for the state file: RFC 3339, UTC, whole seconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// Next is the state at the start of the next iteration, which is now.
func (s State) Next(now time.Time) State {
	s.IterationTimes = s.Times(now)
	s.Iteration++
	s.LastIterationAt = Stamp(now)
	return s
}
