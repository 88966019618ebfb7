package managed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/internal/bridges"
	"heartbeat/internal/cli"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
)

// stepped is the outcome of one step of each run.
type stepped struct {
	orchestrate.Outcome
	waits []string // in words, what the runs wait for that is no entry
	stuck bool     // a run cannot continue at all
}

// stepRuns takes a step of each run. A signal and the end of the time cut it short.
func (r *run) stepRuns() (stepped, *ending) {
	ctx, cancel := r.inTime()
	defer cancel()
	s, err := r.step(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return s, r.timedOut()
	}
	return s, r.stuck(err)
}

func (r *run) step(ctx context.Context) (stepped, error) {
	all, err := bridges.All(&r.Runs, r.box, r.note)
	if err != nil {
		return stepped{}, err
	}
	outcome, err := orchestrate.StepAll(ctx, all, orchestrate.Round{Stepped: func(_ *orchestrate.Bridge, report orchestrate.Report) error {
		for _, why := range report.Refused {
			r.Line(time.Now(), fmt.Sprintf("run %s: a result was not posted: %s", report.Run, words.Brief(why)))
		}
		return nil
	}})
	return inWords(outcome), err
}

func (r *run) note(format string, args ...any) { r.Line(time.Now(), fmt.Sprintf(format, args...)) }

// inWords says what the runs wait for.
func inWords(all orchestrate.Outcome) stepped {
	s := stepped{Outcome: all}
	for _, r := range all.Reports {
		switch {
		case r.Done:
		case r.Guard != "":
			s.stuck = true
			s.waits = append(s.waits, fmt.Sprintf("run %s goes no further: %s", r.Run, cli.Guarded(words.Brief(r.Guard), r.OutOfSteps)))
		case len(r.Held) > 0:
			s.waits = append(s.waits, fmt.Sprintf("run %s waits for a person: %s", r.Run, heldWords(r.Held)))
		case r.NotBefore == nil && len(r.Queued) == 0:
			s.waits = append(s.waits, fmt.Sprintf("run %s is %s", r.Run, r.Status))
		}
	}
	return s
}

func heldWords(all []orchestrate.Held) string {
	var texts []string
	for _, h := range all {
		texts = append(texts, h.Effect+" "+words.Brief(h.Question+h.Reason))
	}
	return strings.Join(texts, ", ")
}
