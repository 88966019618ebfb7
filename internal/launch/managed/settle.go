package managed

import (
	"context"
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/charging"
	"heartbeat/internal/enforce"
	recovery "heartbeat/recover"
)

// state is what the inbox asks for between two sessions.
type state struct {
	paused  *inbox.Pause
	backoff *inbox.Backoff
	waits   bool      // an entry does
	asleep  time.Time // when the next sleep of a run is over, zero for none
	runs    stepped   // where nothing waits, what the runs came to
}

// settle decides about what the last session left in flight, and returns what to do
// next. If it sets many entries aside, others get the lock between its transactions.
func (r *run) settle(ctx context.Context) (st state, err error) {
	r.uncounted(charging.Gone(r.box, r.lastSession(), nil))
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
	r.uncounted(charging.Note(tx, r.box, r.lastSession()))
	if err := r.settleEntry(tx); err != nil {
		return st, err
	}
	st, more := r.stateOf(tx)
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

// lastSession is the session that has ended and is not settled yet, "" for none.
func (r *run) lastSession() string {
	if r.last == nil {
		return ""
	}
	return r.last.name()
}

// uncounted tells that what a session spent could not be counted, which keeps nobody from
// going on.
func (r *run) uncounted(err error) {
	if err != nil {
		r.Line(time.Now(), "what the sessions spent is not all counted: "+err.Error())
	}
}

// settleEntry settles the orphan, if there is one. A turn that ended in an API error is
// decided by that error, not by the policy.
func (r *run) settleEntry(tx *inbox.Tx) error {
	o := r.Recovery
	if r.last != nil && r.last.ended().asked {
		o.Reason = inbox.ReasonAsked
	}
	if over, err := r.settleOver(tx); over || err != nil {
		return err
	}
	report, err := recovery.Settle(tx, o)
	if err != nil || report.Failure != nil {
		return err
	}
	return r.holdAfter(tx)
}

// holdAfter holds delivery if a turn of the last session that was no entry's ended in an
// error. A hook that wakes its session holds delivery itself.
func (r *run) holdAfter(tx *inbox.Tx) error {
	if r.last == nil || r.Mode == Persist {
		return nil
	}
	s, err := tx.Session(r.last.name())
	if err != nil || s.Failure == nil || s.FailedSeq < r.last.seq {
		return err
	}
	return recovery.HoldDelivery(tx, s.Failure, false)
}

func (r *run) stateOf(tx *inbox.Tx) (st state, err error) {
	if v := enforce.JudgeDay(r.Limits, tx.Today()); v != nil {
		if err = enforce.PauseForDay(tx, v); err != nil {
			return st, err
		}
	}
	if err = enforce.NoteRuns(tx, &r.Runs); err != nil {
		return st, err
	}
	if st.paused, err = tx.Paused(); err != nil {
		return st, err
	}
	if st.backoff, err = tx.Backoff(); err != nil {
		return st, err
	}
	err = r.nextWanted(tx)
	switch {
	case errors.Is(err, inbox.ErrEmpty):
		return st, nil
	case errors.Is(err, inbox.ErrTorn): // the hook waits until it is whole
		err = nil
	}
	st.waits = err == nil
	return st, err
}
