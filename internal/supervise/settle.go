package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	recovery "heartbeat/recover"
)

// state is the state of the inbox between two sessions.
type state struct {
	recovery.Hold
	waits  bool      // an entry waits
	asleep time.Time // when the first sleep of a run ends, zero for none
	runs   stepped   // the result of stepping the runs, if nothing waits
}

// settle settles what the last session left in flight, and returns what the inbox then holds.
// If many entries are set aside, others get the lock between its transactions.
func (r *run) settle(ctx context.Context) (st state, err error) {
	for {
		if st, err = r.settleOnce(ctx); !errors.Is(err, inbox.ErrMore) {
			return st, err
		}
	}
}

func (r *run) settleOnce(ctx context.Context) (st state, err error) {
	tx, err := r.box.Begin(ctx)
	if err != nil {
		return st, cmp.Or(r.lost(), err)
	}
	defer func() { err = errors.Join(err, tx.Close()) }()
	if err := r.lost(); err != nil {
		return st, err
	}
	ended := "" // the session that is not settled yet
	if r.last != nil {
		ended = r.last.name()
	}
	if uncounted := meter.NoteCharge(tx, ended, recovery.LivingOwner(tx) != nil); uncounted != nil { // the work goes on
		r.Line(time.Now(), "what the sessions spent is not all counted: "+uncounted.Error())
	}
	if err := r.settleEntry(tx); err != nil {
		return st, err
	}
	if err := r.endLast(tx); err != nil {
		return st, err
	}
	tx.Holds().EndStop() // also the stop of a killed launcher
	var more error
	st.Hold, st.waits, more = recovery.Waiting(tx, r.asker())
	if more != nil && !errors.Is(more, inbox.ErrMore) {
		return st, more
	}
	if tx.Dirty() {
		if err := tx.Commit(); err != nil {
			return st, err
		}
	}
	if more != nil {
		return st, more
	}
	r.last, r.seq = nil, tx.Seq()
	return st, recovery.ForgetSpills(r.box, tx.InFlight())
}

// endLast records that the last session ended, if its client left the hook no time for that.
func (r *run) endLast(tx *inbox.Tx) error {
	if r.last == nil || !r.last.inOrder || r.last.name() == "" {
		return nil
	}
	in := tx.In(r.last.name())
	if s := in.Known(); s.StartedAt == nil || s.EndedAt != nil || s.Life() == machine.Alive {
		return nil
	}
	return in.End()
}

func (r *run) asker() recovery.Asker {
	return recovery.Asker{
		Settings: r.Settings, Box: r.box,
		Elsewhere: func(e inbox.Entry) (string, error) { return orchestrate.WhyNotNeeded(r.box, e.ID, e.Metadata), nil },
	}
}

// settleEntry settles the orphan, if there is one, unless its owner lives. If its turn ended in an
// API error, that error decides, not the policy. If the last session's failed turn belonged to no
// entry, settleEntry holds delivery; in Persist mode the hook that wakes the session does.
func (r *run) settleEntry(tx *inbox.Tx) error {
	sight := recovery.Sight{Charged: true}
	if d := tx.InFlight(); r.last != nil && d != nil {
		why := r.last.ended()
		switch { // without a reason the policy decides
		case why.asked:
			sight.Reason = inbox.ReasonAsked
		case r.last.cutShort:
			sight.Reason = inbox.ReasonStopped
		}
		sight.Over = why.over.Of(d)
	}
	report, err := recovery.Settle(tx, r.asker(), sight)
	if err != nil || report.Failure != nil || sight.Over != nil || r.last == nil || r.Mode == Persist {
		return err
	}
	s := tx.In(r.last.name()).Known()
	if s.Failure == nil || s.FailedSeq < r.last.seq {
		return nil
	}
	return recovery.HoldDelivery(tx, s.Failure, false)
}

func fromView[T any](box *inbox.Inbox, read func(*inbox.View) (T, error)) (got T, err error) {
	v, err := box.View()
	if err != nil {
		return got, err
	}
	defer func() { _ = v.Close() }() // only read
	return read(v)
}

// readTotals reads the counts since the inbox's journal began.
func readTotals(box *inbox.Inbox) (inbox.Totals, error) { return fromView(box, (*inbox.View).Totals) }

// spent returns everything ever spent, as far as the transcripts show.
func spent(box *inbox.Inbox) (price.Amount, error) {
	p, err := book.Spending(box, nil)
	if err != nil {
		return price.Amount{}, err
	}
	return p.Total(), nil
}

// countQueued counts the entries that wait, -1 if unknown.
func countQueued(box *inbox.Inbox) int64 {
	b, err := fromView(box, func(v *inbox.View) (inbox.Backlog, error) { return v.Backlog(context.Background()) })
	if err != nil {
		return -1
	}
	return b.Entries
}

// delivered returns the entry in flight as of the last commit, which the files may lag behind on a full disk; nil for
// none.
func delivered(box *inbox.Inbox) (*inbox.Delivery, error) {
	return fromView(box, func(v *inbox.View) (*inbox.Delivery, error) { return v.InFlight(), nil })
}

// InFlight reports whether an entry of the inbox in dir is in flight.
func InFlight(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".in-flight"))
	return err == nil
}

// hasUnserved reports whether a deliverable entry waits, or one was handed over and never taken up. In a session that
// sits at its prompt, one that was taken up and is not being checked is unserved, too.
func hasUnserved(box *inbox.Inbox, sits bool) bool {
	unserved, err := fromView(box, func(v *inbox.View) (bool, error) {
		if d := v.InFlight(); d != nil {
			checked := d.Check.Running() || d.Check != nil && d.Check.Status == inbox.CheckUnable
			e := recovery.EvidenceOf(d)
			return e.Woken && (!e.Bound || sits && !checked), nil
		}
		paused, err1 := v.Holds().Paused()
		backoff, err2 := v.Holds().Backoff()
		if err := errors.Join(err1, err2); err != nil || paused != nil || backoff != nil {
			return false, err
		}
		next, err := v.Next(1)
		return len(next) > 0, err
	})
	return err == nil && unserved // the follower reports an error
}

// settleAndStep settles what the last session left. If nothing waits in the inbox, it steps the runs, which may add
// entries.
func (r *run) settleAndStep() (st state, e *ending) {
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
	// A warm stop lets the steps finish; a hard end cuts them short.
	all, unread := orchestrate.OpenAll(r.stop.over, &r.Runs, r.box, r.note)
	outcome, err := orchestrate.StepAll(r.stop.over, all, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		report, err := b.Step(ctx)
		for _, why := range report.Refused {
			r.note("run %s: a result was not posted: %s", report.Run, words.Brief(why))
		}
		return report, err
	})
	err = errors.Join(unread, err)
	s := inWords(outcome)
	if s.Waiting {
		var failed error
		if st, failed = r.settle(r.stop.asked); failed != nil || st.waits {
			return st, r.stuck(failed) // the work of one run comes before the trouble of another
		}
	}
	if err != nil && (s.NotBefore.IsZero() || !r.canAwait(s.NotBefore)) {
		return st, r.stuck(err)
	}
	st.asleep, st.runs = s.NotBefore, s
	r.asleep = s.NotBefore
	return st, nil
}

// stepped is the outcome of one step of each run.
type stepped struct {
	orchestrate.Outcome
	waits []string // what the runs wait for besides entries, in words
	stuck bool     // a run cannot continue at all
}

func (r *run) note(format string, args ...any) { r.Line(time.Now(), fmt.Sprintf(format, args...)) }

func inWords(all orchestrate.Outcome) stepped {
	s := stepped{Outcome: all}
	for _, r := range all.Reports {
		switch {
		case r.Done:
		case r.Guard != "":
			s.stuck, s.waits = true, append(s.waits, fmt.Sprintf("run %s goes no further: %s", r.Run, cli.GuardHint(words.Brief(r.Guard), r.OutOfSteps)))
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
