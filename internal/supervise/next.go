package supervise

import (
	"context"
	"fmt"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	recovery "heartbeat/recover"
)

// look settles what the last session left. If nothing waits in the inbox, it steps the runs, which
// may add entries.
func (r *run) look() (st state, e *ending) {
	st, err := r.settle(r.stop.asked)
	if err != nil {
		return st, r.stuck(err)
	}
	if st.Owner != nil || st.waits || r.Mode != Drain || len(r.Runs.Dirs) == 0 {
		return st, nil
	}
	if time.Until(r.asleep) > 0 {
		st.asleep = r.asleep // a step changes files and so would end the sleep
		return st, nil
	}
	s, e := r.stepRuns()
	if e != nil {
		return st, e
	}
	if s.Waiting {
		if st, err = r.settle(r.stop.asked); err != nil || st.waits {
			return st, r.stuck(err)
		}
	}
	st.asleep, st.runs = s.NotBefore, s
	r.asleep = s.NotBefore
	return st, nil
}

// enough returns why the work ends here, nil if it goes on.
func (r *run) enough(st state) *ending {
	switch {
	case r.Mode == Drain && st.Owner != nil:
		return &ending{reason: Busy, detail: st.Owner.String()}
	case r.Mode == Drain && !st.waits:
		return r.nothingWaits(st)
	}
	if r.Mode == Drain {
		if e := r.impatient(st); e != nil {
			return e
		}
	}
	switch {
	case r.Mode == Drain && !r.UntilDrained && r.report.Sessions > 0:
		return &ending{reason: Left, detail: "the session ended, and entries wait"}
	case st.waits && r.box.CheckRoom() != nil:
		return r.stuck(r.box.CheckRoom())
	case r.Mode == Drain && r.pace.fruitless > r.MaxRestarts:
		return &ending{reason: Exhausted, detail: words.Count(r.pace.fruitless, "session", "sessions") +
			" in a row ended without an answered entry" + because(st.Backoff)}
	}
	return nil
}

// nothingWaits decides what an empty inbox means: the end, unless a run wakes soon enough.
func (r *run) nothingWaits(st state) *ending {
	asleep := !st.asleep.IsZero()
	switch {
	case asleep && r.bears(st.asleep):
		return nil
	case asleep:
		st.runs.waits = append(st.runs.waits, "a run sleeps until "+words.Stamp(st.asleep))
	case len(st.runs.waits) == 0:
		return &ending{reason: Drained}
	}
	e := &ending{reason: RunWaits, detail: strings.Join(st.runs.waits, "; ")}
	if st.runs.stuck {
		e.reason = RunStuck
	}
	return e
}

// pausedBy ends the work because of a pause. It tells a pause caused by an API error from one that
// a person asked for.
func pausedBy(p *inbox.Pause) *ending {
	e := &ending{reason: Paused, detail: "delivery is paused, until `heartbeat resume`"}
	if p.Until != nil {
		e.detail = "delivery is paused until " + words.Stamp(*p.Until) + ", or `heartbeat resume`"
	}
	switch {
	case recovery.WantsPrice(p):
		e.detail += ": " + words.Line(p.Reason) // its end says what to do
	case p.Reason != "":
		e.detail += ": " + words.Brief(p.Reason)
	}
	switch remedy := claude.RemedyOf(p.Reason); {
	case remedy.Login:
		e.reason, e.shown = Authentication, true
	case remedy.Person || recovery.WantsPrice(p):
		e.reason, e.shown = Refused, true
	}
	return e
}

// because names, after a colon, the failure that a back-off is for.
func because(b *inbox.Backoff) string {
	if b == nil || b.Failure == nil {
		return ""
	}
	return ": " + words.Brief(b.Failure.String())
}

// rest is how long to wait before the next session.
func (r *run) rest(st state) time.Duration {
	rest := time.Until(r.pace.notBefore)
	if w := r.held(st); !w.end.IsZero() {
		rest = max(rest, time.Until(w.end))
	}
	if !r.Until.IsZero() {
		rest = min(rest, time.Until(r.Until))
	}
	return rest
}

// stepped is the outcome of one step of each run.
type stepped struct {
	orchestrate.Outcome
	waits []string // what the runs wait for besides entries, in words
	stuck bool     // a run cannot continue at all
}

// stepRuns steps each run. A warm stop lets the steps finish; a hard end cuts them short.
func (r *run) stepRuns() (stepped, *ending) {
	all, err := orchestrate.OpenAll(r.stop.over, &r.Runs, r.box, r.note)
	if err != nil {
		return stepped{}, r.stuck(err)
	}
	outcome, err := orchestrate.StepAll(r.stop.over, all, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		report, err := b.Step(ctx)
		for _, why := range report.Refused {
			r.Line(time.Now(), fmt.Sprintf("run %s: a result was not posted: %s", report.Run, words.Brief(why)))
		}
		return report, err
	})
	return inWords(outcome), r.stuck(err)
}

func (r *run) note(format string, args ...any) { r.Line(time.Now(), fmt.Sprintf(format, args...)) }

// inWords says what the runs wait for besides entries.
func inWords(all orchestrate.Outcome) stepped {
	s := stepped{Outcome: all}
	for _, r := range all.Reports {
		switch {
		case r.Done:
		case r.Guard != "":
			s.stuck, s.waits = true, append(s.waits, fmt.Sprintf("run %s goes no further: %s", r.Run, cli.Guarded(words.Brief(r.Guard), r.OutOfSteps)))
		case len(r.Held) > 0:
			var held []string
			for _, h := range r.Held {
				held = append(held, h.Effect+" "+words.Brief(h.Question+h.Reason))
			}
			s.waits = append(s.waits, fmt.Sprintf("run %s waits for a person: %s", r.Run, strings.Join(held, ", ")))
		case r.NotBefore == nil && len(r.Queued) == 0:
			s.waits = append(s.waits, fmt.Sprintf("run %s is %s", r.Run, r.Status))
		}
	}
	return s
}
