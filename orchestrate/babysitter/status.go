package babysitter

import (
	"context"
	"encoding/json"
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
func (c *CLI) Status(ctx context.Context, runDir string) (Status, error) {
	r, err := lookAt(runDir)
	if err != nil {
		return Status{}, err
	}
	type answer struct {
		State           string
		PendingByKind   *map[string]int
		CompletionProof text
		LastEvent       struct {
			Seq        int
			Type       text
			RecordedAt stamp
		}
	}
	a, err := callTwice(ctx, c, request{
		doing: "ask for the status of the run " + r.dir, command: "run:status", args: []string{r.dir, "--json"}, dir: r.projectOf(), timeout: statusTimeout,
	}, func(a *answer) bool { return a.State != "" && a.PendingByKind != nil })
	if err != nil {
		return Status{}, err
	}
	return Status{
		State: a.State, PendingByKind: *a.PendingByKind, CompletionProof: string(a.CompletionProof),
		LastEvent: Event{a.LastEvent.Seq, string(a.LastEvent.Type), a.LastEvent.RecordedAt.Time},
	}, nil
}

// FailureOf is the error that the run failed with last; found is false where it
// never did.
func (c *CLI) FailureOf(ctx context.Context, runDir string) (failure Failure, found bool, err error) {
	r, err := lookAt(runDir)
	if err != nil {
		return Failure{}, false, err
	}
	type answer struct {
		Events *[]struct {
			Data struct {
				Error struct {
					Name, Message, Stack text
					Data                 json.RawMessage
				}
			}
		}
	}
	a, err := callTwice(ctx, c, request{
		doing: "ask for the failure of the run " + r.dir, command: "run:events", dir: r.projectOf(), timeout: statusTimeout,
		args: []string{r.dir, "--json", "--filter-type", "RUN_FAILED", "--reverse", "--limit", "1"},
	}, func(a *answer) bool { return a.Events != nil })
	if err != nil || len(*a.Events) == 0 {
		return Failure{}, false, err
	}
	e := (*a.Events)[0].Data.Error
	return Failure{string(e.Name), string(e.Message), string(e.Stack), e.Data}, true, nil
}
