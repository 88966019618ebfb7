package babysitter

import (
	"context"
	"time"
)

// CreatedState is the state of a run with nothing pending that is not at its end:
// one that was just made, or whose last result was posted. It wants to be iterated.
const CreatedState = "created"

// Status is what run:status answers, without changing anything.
type Status struct {
	// State is CreatedState, Waiting, Completed or Failed. A failed run stays so until it
	// completes, also where it goes on.
	State string
	// PendingByKind counts what has no result, orphans included: effects that an
	// edited process no longer asks for. Only [CLI.Iterate] tells them apart.
	PendingByKind   map[string]int
	LastEvent       Event
	CompletionProof string // where State is Completed
}

// Event is one of the run's journal.
type Event struct {
	Seq        int
	Type       string // RUN_CREATED, EFFECT_REQUESTED, EFFECT_RESOLVED, RUN_COMPLETED, RUN_FAILED …
	RecordedAt time.Time
}

// Status looks at the run.
func (c *CLI) Status(ctx context.Context, runDir string) (Status, error) { panic("todo") }

// FailureOf is the error that the run failed with last; found is false where it
// never did.
func (c *CLI) FailureOf(ctx context.Context, runDir string) (failure Failure, found bool, err error) {
	panic("todo")
}
