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

// Effect is an effect of a run, with or without a result.
type Effect struct {
	EffectID    string
	Status      string // Requested, ResolvedOK or ResolvedError
	Kind        string
	Label       string
	TaskID      string
	StepID      string
	TaskDefRef  string // a path relative to the run
	ResultRef   string // a path relative to the run; empty while there is no result
	RequestedAt time.Time
	ResolvedAt  time.Time // zero while there is no result
}

// Effects lists all effects of a run in the order of their requests, including those that
// the process no longer asks for. To learn what a run waits for, iterate it.
func (c *CLI) Effects(ctx context.Context, runDir string) ([]Effect, error) {
	r, err := lookAt(runDir)
	if err != nil {
		return nil, err
	}
	return c.effects(ctx, r)
}

func (c *CLI) effects(ctx context.Context, r run) ([]Effect, error) {
	type answer struct {
		Tasks *[]struct {
			EffectID, Status, Kind, Label, TaskID, StepID, TaskDefRef, ResultRef text

			RequestedAt, ResolvedAt stamp
		}
	}
	listed, err := callTwice(ctx, c, request{
		doing: "list the effects of the run " + r.dir, command: "task:list", args: []string{r.dir, "--json"}, dir: r.projectOf(), timeout: statusTimeout,
	}, func(a *answer) bool { return a.Tasks != nil })
	if err != nil {
		return nil, err
	}
	all := make([]Effect, 0, len(*listed.Tasks))
	for _, t := range *listed.Tasks {
		all = append(all, Effect{
			EffectID: string(t.EffectID), Status: string(t.Status), Kind: string(t.Kind), Label: string(t.Label), TaskID: string(t.TaskID), StepID: string(t.StepID),
			TaskDefRef: string(t.TaskDefRef), ResultRef: string(t.ResultRef), RequestedAt: t.RequestedAt.Time, ResolvedAt: t.ResolvedAt.Time,
		})
	}
	return all, nil
}

// resolved reports whether the effect has a result.
func (c *CLI) resolved(ctx context.Context, r run, effectID string) (bool, error) {
	all, err := c.effects(ctx, r)
	for _, e := range all {
		if e.EffectID == effectID {
			return e.Status == ResolvedOK || e.Status == ResolvedError, nil
		}
	}
	return false, err
}
