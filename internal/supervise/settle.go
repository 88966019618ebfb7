package supervise

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
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

// settle decides about what the last session left in flight, and returns what is to be done next.
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
		return st, err
	}
	defer func() { err = errors.Join(err, tx.Close()) }()
	if uncounted := meter.NoteCharge(tx, r.lastSession()); uncounted != nil { // the work goes on
		r.Line(time.Now(), "what the sessions spent is not all counted: "+uncounted.Error())
	}
	if err := r.settleEntry(tx); err != nil {
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

// lastSession is the ID of the ended session that is not settled yet, "" for none.
func (r *run) lastSession() string {
	if r.last == nil {
		return ""
	}
	return r.last.name()
}

// asker lets package recover decide by this launcher's settings.
func (r *run) asker() recovery.Asker {
	return recovery.Asker{
		Settings: r.Settings, Box: r.box,
		Elsewhere: func(e inbox.Entry) (string, error) { return orchestrate.Settled(r.box, e.Metadata), nil },
	}
}

// settleEntry settles the orphan, if there is one, unless its owner lives. If its turn ended in an
// API error, that error decides, not the policy.
func (r *run) settleEntry(tx *inbox.Tx) error {
	sight := recovery.Sight{Charged: true}
	if d := tx.InFlight(); r.last != nil && d != nil {
		why := r.last.ended()
		sight.Reason = r.last.reason()
		if why.over != nil && why.seq == d.DeliveredSeq {
			sight.Over = why.over
		}
	}
	report, err := recovery.Settle(tx, r.asker(), sight)
	if err != nil || report.Failure != nil || sight.Over != nil {
		return err
	}
	return r.holdAfter(tx)
}

// holdAfter holds delivery if the last session's failed turn belonged to no entry. In Persist mode
// the hook that wakes the session holds delivery itself.
func (r *run) holdAfter(tx *inbox.Tx) error {
	if r.last == nil || r.Mode == Persist {
		return nil
	}
	s, err := tx.In(r.last.name()).Known()
	if err != nil || s.Failure == nil || s.FailedSeq < r.last.seq {
		return err
	}
	return recovery.HoldDelivery(tx, s.Failure, false)
}

// viewed reads from a view of the inbox as it is now.
func viewed[T any](box *inbox.Inbox, read func(*inbox.View) (T, error)) (got T, err error) {
	v, err := box.View()
	if err != nil {
		return got, err
	}
	defer func() { _ = v.Close() }() // only read
	return read(v)
}

// readTotals reads the counts since the inbox's journal began.
func readTotals(box *inbox.Inbox) (inbox.Totals, error) { return viewed(box, (*inbox.View).Totals) }

// spent is everything ever spent, as far as the transcripts show.
func spent(box *inbox.Inbox) (price.Amount, error) {
	p, err := book.Spending(box, nil)
	if err != nil {
		return price.Amount{}, err
	}
	return p.Total(), nil
}

// countQueued counts the entries that wait, -1 if unknown.
func countQueued(box *inbox.Inbox) int64 {
	b, err := viewed(box, func(v *inbox.View) (inbox.Backlog, error) { return v.Backlog(context.Background()) })
	if err != nil {
		return -1
	}
	return b.Entries
}

// sessionInFlight is the ID of the session that has the entry in flight, "" for none.
func sessionInFlight(box *inbox.Inbox) string {
	d, err := viewed(box, func(v *inbox.View) (*inbox.Delivery, error) { return v.InFlight(), nil })
	if err != nil || d == nil {
		return "" // settle says why
	}
	return d.SessionID
}

func entryInFlight(box *inbox.Inbox) bool { return InFlight(box.Dir()) }

// InFlight reports whether an entry of the inbox in dir is in flight.
func InFlight(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".in-flight"))
	return err == nil
}

// entryUnserved reports whether a deliverable entry waits, or one was handed over and never taken up.
func entryUnserved(box *inbox.Inbox) bool {
	unserved, err := viewed(box, func(v *inbox.View) (bool, error) {
		if d := v.InFlight(); d != nil {
			e := recovery.EvidenceOf(d)
			return e.Woken && !e.Bound, nil
		}
		paused, err1 := v.Holds().Paused()
		backoff, err2 := v.Holds().Backoff()
		if err := errors.Join(err1, err2); err != nil || paused != nil || backoff != nil {
			return false, err
		}
		next, err := v.Next(1)
		return len(next) > 0, err
	})
	return err == nil && unserved // the follower says why
}
