package orchestrate

import (
	"context"
	"time"
)

// Outcome is what a round of steps came to.
type Outcome struct {
	// Reports has a report for each step, in the order of the runs.
	Reports []Report
	// Unfinished are the runs that are not done.
	Unfinished []*Bridge
	// Queued says that a step appended an entry.
	Queued bool
	// Waiting says that a run waits for an entry of the inbox, perhaps one that was just appended.
	Waiting bool
	// NotBefore is when the first sleep of a run that can continue is over; zero if there is none.
	NotBefore time.Time
}

// StepAll has take take one step of each run, in order. Its first error ends the round; the outcome covers the
// steps before.
func StepAll(ctx context.Context, bridges []*Bridge, take func(context.Context, *Bridge) (Report, error)) (all Outcome, err error) {
	for _, b := range bridges {
		r, err := take(ctx, b)
		if err != nil {
			return all, err
		}
		all.Reports = append(all.Reports, r)
		if !r.Done {
			all.Unfinished = append(all.Unfinished, b)
		}
		all.Queued = all.Queued || len(r.Queued) > 0
		all.Waiting = all.Waiting || len(r.Queued) > 0 || r.Waits > 0
		if r.Guard == "" && r.NotBefore != nil && (all.NotBefore.IsZero() || r.NotBefore.Before(all.NotBefore)) {
			all.NotBefore = *r.NotBefore
		}
	}
	return all, nil
}
