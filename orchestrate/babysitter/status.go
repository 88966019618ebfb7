package babysitter

import (
	"context"
	"encoding/json"
	"time"
)

// CreatedState is the state of a run that has nothing pending and has not ended: it was
// just made, or its last result was posted. Iterate it.
const CreatedState = "created"

// Status is the answer of run:status.
type Status struct {
	// State is CreatedState, Waiting, Completed or Failed. A failed run is reported as
	// failed until it completes, even if it continues.
	State string
	// PendingByKind counts the effects without a result, including those that an edited
	// process no longer asks for. Only [CLI.Iterate] tells these apart.
	PendingByKind   map[string]int
	LastEvent       Event
	CompletionProof string // if State is Completed
}

// Event is an event of the run's journal.
type Event struct {
	Seq        int
	Type       string // RUN_CREATED, EFFECT_REQUESTED, EFFECT_RESOLVED, RUN_COMPLETED, RUN_FAILED …
	RecordedAt time.Time
}

// Status asks for the state of the run, and changes nothing.
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

// FailureOf is the error with which the run failed last; found is false if it never failed.
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
