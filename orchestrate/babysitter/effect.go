package babysitter

import (
	"context"
	"time"
)

// The states of an effect.
const (
	Requested     = "requested"
	ResolvedOK    = "resolved_ok"
	ResolvedError = "resolved_error"
)

// Effect is one of a run's effects, whatever became of it.
type Effect struct {
	EffectID    string
	Status      string // Requested, ResolvedOK or ResolvedError
	Kind        string
	Label       string
	TaskID      string
	StepID      string
	TaskDefRef  string // a path relative to the run
	ResultRef   string // likewise; empty while there is no result
	RequestedAt time.Time
	ResolvedAt  time.Time // zero while there is no result
}

// Effects lists all effects of a run in the order of their requests, orphans
// included: to know what a run waits for, iterate.
func (c *CLI) Effects(ctx context.Context, runDir string) ([]Effect, error) { panic("todo") }
