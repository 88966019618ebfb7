package supervise

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// stepRuns takes a step of each run. A warm stop lets it finish, a hard end cuts it short.
func (r *run) stepRuns() (stepped, *ending) {
	s, err := r.step(r.stop.over)
	return s, r.stuck(err)
}

func (r *run) step(ctx context.Context) (stepped, error) {
	all, err := orchestrate.OpenAll(&r.Runs, r.box, r.note)
	if err != nil {
		return stepped{}, err
	}
	outcome, err := orchestrate.StepAll(ctx, all, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		report, err := b.Step(ctx)
		for _, why := range report.Refused {
			r.Line(time.Now(), fmt.Sprintf("run %s: a result was not posted: %s", report.Run, words.Brief(why)))
		}
		return report, err
	})
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
			s.stuck, s.waits = true, append(s.waits, fmt.Sprintf("run %s goes no further: %s", r.Run, cli.Guarded(words.Brief(r.Guard), r.OutOfSteps)))
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
