package recover

import (
	"cmp"
	"context"
	"errors"

	"heartbeat/inbox"
	"heartbeat/internal/charging"
)

// Action is what became of an entry.
type Action string

// The actions.
const (
	None         Action = "none"          // nothing was in flight
	Owned        Action = "owned"         // its owner lives: nothing was changed
	Cleared      Action = "cleared"       // it was answered before: only the note of it was left
	DeadLettered Action = "dead-lettered" // see the report's reason
	Requeued     Action = "requeued"      // the next delivery is of this entry
	Returned     Action = "returned"      // the same, since it had never arrived
	Dropped      Action = "dropped"
	Answered     Action = "answered"
)

// Settle decides about the entry that tx has in flight, if any, as the table of fates says,
// and keeps delivery back where its turn ended in an error (see [HoldDelivery]). An entry
// that another has who lives stays as it is. The caller commits.
func Settle(tx *inbox.Tx, a Asker, sight Sight) (Report, error) {
	d := tx.InFlight()
	if d == nil {
		if s := tx.Stale(); s != nil {
			return reportOf(s, Cleared), nil
		}
		return Report{Action: None}, nil
	}
	s := &situation{Sight: sight, tx: tx, d: d, owner: a.barredBy(tx, d)}
	if s.owner != nil {
		report := reportOf(d, decide(s).action)
		report.Owner = s.owner
		return report, nil
	}
	if !sight.Charged {
		if err := charging.Orphan(tx, a.Box); err != nil {
			a.note("what the session spent is not all counted: %v", err)
		}
	}
	untold, err := noteFailure(tx, sight)
	if err != nil {
		return Report{Action: None}, err
	}
	if o := sight.Over; o != nil && o.Reach == OfDay && !o.Alone {
		if err := PauseForDay(tx, o); err != nil {
			return Report{Action: None}, err
		}
	}
	d = tx.InFlight() // with what was charged to it, and the failure
	s.d, s.policy, s.used = d, a.policyFor(d), d.Attempt >= a.attempts()
	if !sight.Ended && !sight.NotHandedOver && (!sight.Overcome || untold) {
		s.failure = d.Failure
	}
	f := decide(s)
	report := reportOf(d, f.action)
	if v := d.Verdict; v != nil && !sight.NotHandedOver && (v.Kind != inbox.VerdictFailed || !s.over()) {
		report.Said = v.Kind
	}
	if err := f.do(s); err != nil {
		return report, err
	}
	if f.action == DeadLettered {
		report.Reason = cmp.Or(f.reason, sight.Reason)
	}
	err = s.holdDelivery(&report)
	return report, err
}

// noteFailure records the error of the API that ended the entry's turn, where the client told
// no hook of it and the transcript does. It reports whether there is one.
func noteFailure(tx *inbox.Tx, sight Sight) (untold bool, err error) {
	d := tx.InFlight()
	if sight.Ended || sight.NotHandedOver || sight.Over != nil || d.Failure != nil || d.Verdict != nil {
		return false, nil
	}
	name, message, failed := EvidenceOf(d).ByBlock(d).Seen().Failed()
	if !failed {
		return false, nil
	}
	return true, tx.Fail(d.SessionID, name, message)
}

// holdDelivery keeps delivery back after an error that ended the entry's turn.
func (s *situation) holdDelivery(r *Report) error {
	switch {
	case s.failure == nil || s.Over != nil:
		return nil
	case s.d.Verdict != nil:
		return HoldDelivery(s.tx, s.failure, false)
	}
	r.Failure = s.failure
	if s.Overcome {
		return nil // a session went on since
	}
	return HoldDelivery(s.tx, s.failure, true)
}

// Run settles what a session left in flight, in a transaction of its own. It is
// safe beside a live hook and beside itself. State that nobody should have
// written (an error that matches [inbox.ErrCorrupt]) is left untouched.
func Run(ctx context.Context, a Asker, sight Sight) (report Report, err error) {
	tx, err := a.Box.Begin(ctx)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, tx.Close()) }()
	report, err = Settle(tx, a, sight)
	if err == nil {
		err = tx.Commit()
	}
	report.Cursor, report.Warnings = tx.Cursor(), tx.Warnings()
	return report, err
}
