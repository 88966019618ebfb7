package session

import (
	"time"
)

// DefaultMaxIterations is the CLI's limit where none is given.
const DefaultMaxIterations = 256

// State is what a state file says.
type State struct {
	Active        bool
	Iteration     int    // counts from 1
	MaxIterations int    // 0 is no limit
	RunID         string // empty until a run is bound
	// StartedAt and LastIterationAt are as [Stamp] spells them. What stands in a
	// file is kept as it is.
	StartedAt       string
	LastIterationAt string
	IterationTimes  []int // the last durations, in whole seconds, the newest last
	// Prompt is what the person asked for, without white space around it.
	Prompt string
}

// New is the state of a session that begins.
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

// Stamp spells a time as the state file has it: RFC 3339, UTC, whole seconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// Next is the state of the iteration that begins now.
func (s State) Next(now time.Time) State {
	s.IterationTimes = s.Times(now)
	s.Iteration++
	s.LastIterationAt = Stamp(now)
	return s
}
