package hook

import (
	"context"
	"fmt"
	"time"

	"heartbeat/internal/bridges"
	"heartbeat/internal/cli"
	"heartbeat/orchestrate"
)

// shortSleep is how long a hook waits for a run's sleep to be over.
const shortSleep = time.Minute

const (
	// postingTime is how long a hook posts results in one go: the client ends it after
	// ten minutes.
	postingTime = 4 * time.Minute
	// passTime and passPosts bound what a hook does for runs once it has delivered an
	// entry, which the session waits for.
	passTime  = 30 * time.Second
	passPosts = 8
)

// stepRuns takes a step of each run, and reports whether that brought entries.
func (h *hook) stepRuns(ctx context.Context) (brought bool) {
	return h.eachRun(ctx, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		b.Posts, b.Until = 0, time.Now().Add(postingTime)
		return b.Step(ctx)
	})
}

// passRuns has the runs learn of what was answered, at a Stop that has an entry to
// deliver all the same, or may deliver none.
func (h *hook) passRuns(ctx context.Context) {
	if len(h.bridges) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, passTime)
	defer stop()
	h.eachRun(ctx, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		b.Posts, b.Until = passPosts, time.Time{}
		return b.StepIfReady(ctx, h.lastSettled)
	})
}

// eachRun takes a step of each run. Where one fails, the others and the inbox go on.
func (h *hook) eachRun(ctx context.Context, take stepping) (brought bool) {
	h.worked = map[string]bool{}
	all, _ := orchestrate.StepAll(ctx, h.bridges, orchestrate.Round{ // no error ends this round
		Take: func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
			return h.stepBound(ctx, b, take)
		},
		Failed: func(_ *orchestrate.Bridge, err error) error {
			h.complainOnce(err)
			return nil
		},
		Stepped: func(b *orchestrate.Bridge, report orchestrate.Report) error {
			h.stepped(b, report)
			return nil
		},
	})
	if !all.NotBefore.IsZero() {
		h.lookAgainIn(time.Until(all.NotBefore))
		if h.nextSleep.IsZero() || all.NotBefore.Before(h.nextSleep) {
			h.nextSleep = all.NotBefore
		}
	}
	return all.Queued
}

// stepped says what came of a run's step, and starts the commands that it left.
func (h *hook) stepped(b *orchestrate.Bridge, report orchestrate.Report) {
	for _, note := range report.Notes {
		h.Note("run %s: %s", report.Run, note)
	}
	for _, why := range report.Refused {
		h.complainOnce(fmt.Errorf("run %s: a result was not posted: %s", report.Run, why))
	}
	if report.Busy || len(report.Commands)+report.Unposted > 0 && h.carryOut(b, report) {
		h.worked[report.Dir] = true
		h.lookAgainIn(outsideLook)
	}
	if report.Guard != "" {
		h.complainOnce(fmt.Errorf("run %s: %s", report.Run, cli.Guarded(report.Guard, report.OutOfSteps)))
	}
}

// openRuns opens the runs that the hook drives. One that cannot be read keeps
// nobody from the inbox.
func (h *hook) openRuns() {
	for _, dir := range h.Runs.Dirs {
		b, err := bridges.Open(&h.Runs, h.box, dir, h.Note)
		if err != nil {
			h.Complain(err)
			continue
		}
		b.Outside = true
		h.bridges = append(h.bridges, b)
	}
}
