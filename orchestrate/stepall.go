package orchestrate

import (
	"context"
	"time"
)

// Round says how [StepAll] takes a step of several runs, and who learns what it came to.
type Round struct {
	// Take takes the step of one run; [Bridge.Step] if nil.
	Take func(ctx context.Context, b *Bridge) (Report, error)
	// Stepped is called with the report of each step. An error ends the round. It may
	// be nil.
	Stepped func(b *Bridge, r Report) error
	// Failed is called with the error of a step. If it returns nil the round continues
	// with the next run; an error ends the round. If Failed is nil the first error of a
	// step does.
	Failed func(b *Bridge, err error) error
}

// Outcome is what a round of steps came to.
type Outcome struct {
	// Reports are those of the steps that could be taken, in the order of the runs.
	Reports []Report
	// Unfinished are the runs that are not done, also those whose step failed.
	Unfinished []*Bridge
	// Queued says that a step appended an entry.
	Queued bool
	// Waiting says that a run waits for an entry of the inbox, perhaps one that was
	// appended just now.
	Waiting bool
	// NotBefore is when the first sleep is over, of the runs that can continue; zero if
	// none sleeps.
	NotBefore time.Time
}

// StepAll takes one step of each run, in order. The outcome covers the steps up to the
// error, if there is one.
func StepAll(ctx context.Context, bridges []*Bridge, round Round) (all Outcome, err error) {
	take := round.Take
	if take == nil {
		take = func(ctx context.Context, b *Bridge) (Report, error) { return b.Step(ctx) }
	}
	for _, b := range bridges {
		report, err := take(ctx, b)
		if err != nil {
			all.Unfinished = append(all.Unfinished, b)
			if round.Failed != nil {
				err = round.Failed(b, err)
			}
			if err != nil {
				return all, err
			}
			continue
		}
		all.add(b, report)
		if round.Stepped == nil {
			continue
		}
		if err := round.Stepped(b, report); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (o *Outcome) add(b *Bridge, r Report) {
	o.Reports = append(o.Reports, r)
	if !r.Done {
		o.Unfinished = append(o.Unfinished, b)
	}
	o.Queued = o.Queued || len(r.Queued) > 0
	o.Waiting = o.Waiting || len(r.Queued) > 0 || r.Waits > 0
	if r.Guard == "" && r.NotBefore != nil && (o.NotBefore.IsZero() || r.NotBefore.Before(o.NotBefore)) {
		o.NotBefore = *r.NotBefore
	}
}
