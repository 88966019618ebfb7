package orchestrate

import (
	"fmt"

	"heartbeat/inbox"
	"heartbeat/orchestrate/effect"
	recovery "heartbeat/recover"
)

// Names that package effect has taken over, for callers that have not moved yet.
type (
	Breakpoints = effect.Breakpoints
	Unresolved  = effect.Unresolved
)

const (
	Ask                 = effect.Ask
	Hold                = effect.Hold
	Reject              = effect.Reject
	PostError           = effect.PostError
	Leave               = effect.Leave
	DefaultMaxSteps     = effect.DefaultMaxSteps
	DefaultMaxIdle      = effect.DefaultMaxIdle
	DefaultRejectReason = effect.DefaultRejectReason
)

func Of(d *inbox.Delivery) (runDir, id string, ok bool) {
	m, ok := effect.MarkOf(d)
	return m.RunDir, m.Effect, ok
}

func PolicyOf(d *inbox.Delivery) recovery.Policy { return effect.PolicyOf(d) }

func Again(e inbox.Entry) string { return effect.Reminder(e) }

func EffectOf(name string) string { return effect.IDIn(name) }

func CheckExecute(kinds []string) error {
	if err := effect.CheckExecute(kinds); err != nil {
		return fmt.Errorf("--execute: %w", err)
	}
	return nil
}
