package recover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"heartbeat/inbox"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
)

// Action is what was done with the entry in flight.
type Action string

// The actions.
const (
	None         Action = "none"          // nothing was in flight
	Owned        Action = "owned"         // its owner lives: nothing changed
	Cleared      Action = "cleared"       // it was answered before; only its note was left
	DeadLettered Action = "dead-lettered" // the report has the reason
	Requeued     Action = "requeued"      // it is delivered again
	Returned     Action = "returned"      // it is delivered again, since it never arrived
	Dropped      Action = "dropped"
	Answered     Action = "answered"
)

// Settle decides about the entry that tx has in flight, if any, by the table of fates, and holds delivery back if the
// turn ended in an error (see [HoldDelivery]). It leaves an entry alone whose owner lives and is not the asker. The
// caller commits.
func Settle(tx *inbox.Tx, a Asker, sight Sight) (Report, error) {
	d := tx.InFlight()
	if d == nil {
		if s := tx.Stale(); s != nil {
			return reportOf(s, Cleared), nil
		}
		return Report{Action: None}, nil
	}
	f := a.flightOf(tx, d)
	s := &situation{Sight: sight, tx: tx, d: d, owner: f.Elsewhere()}
	if s.owner != nil {
		report := reportOf(d, decide(s).action)
		report.Owner = s.owner
		return report, nil
	}
	if !s.Charged {
		if err := meter.ChargeOrphan(tx); err != nil {
			a.note("what the session spent is not all counted: %v", err)
		}
	}
	untold, err := s.noteFailure(f)
	if err != nil {
		return Report{Action: None}, err
	}
	if o := s.Over; o != nil && !o.Alone {
		if err := PauseForDay(tx, o); err != nil {
			return Report{Action: None}, err
		}
	}
	a.complete(s, f, untold)
	row := decide(s)
	report := reportOf(s.d, row.action)
	if v := s.d.Verdict; v != nil && !s.NotHandedOver && s.says(v.Kind) {
		report.Said = v.Kind
	}
	if err := row.do(s); err != nil {
		return report, err
	}
	if row.action == DeadLettered {
		report.Reason = cmp.Or(row.reason, s.Reason)
	}
	err = s.holdDelivery(&report)
	return report, err
}

// complete adds to the situation what the delivery shows, with the charges and the failure that were just noted.
func (a Asker) complete(s *situation, f *Flight, untold bool) {
	f.Renew()
	mark, ofRun := effect.MarkOf(f.Entry)
	s.d, s.policy, s.used = f.Entry, a.policyFor(ofRun), f.Entry.Attempt >= cmp.Or(a.MaxAttempts, DefaultMaxAttempts)
	if !s.Ended && !s.NotHandedOver && (!s.Overcome || untold) {
		s.failure = f.Entry.Failure
	}
	if s.Ended {
		s.Reply, s.tasks = f.LastReply(), f.resultTasks()
	}
	s.unreached = func() bool { return f.unreached(s.Output) }
	s.proof = sync.OnceValues(func() (reply string, finished bool) {
		if mark.Effect != "" || s.Ended {
			return "", false // the effect of a run also needs its result
		}
		return f.finished()
	})
}

// says reports whether the agent's verdict of this kind decided the fate.
func (s *situation) says(kind inbox.VerdictKind) bool {
	switch kind {
	case inbox.VerdictDone:
		return s.saidDone()
	case inbox.VerdictFailed:
		return !s.over()
	}
	return true
}

// noteFailure records the API error that ended the entry's turn if only the transcript shows it, because the client
// told no hook. It reports whether there was one.
func (s *situation) noteFailure(f *Flight) (untold bool, err error) {
	if s.Ended || s.NotHandedOver || s.Over != nil || s.d.Failure != nil || s.d.Verdict != nil {
		return false, nil
	}
	at, name, message, untold := f.Failed()
	if untold {
		err = s.tx.In(s.d.SessionID).FailAt(at, name, message)
	}
	return untold, err
}

// holdDelivery holds delivery back after an error that ended the entry's turn.
func (s *situation) holdDelivery(r *Report) error {
	switch {
	case s.failure == nil || s.Over != nil:
		return nil
	case s.d.Verdict != nil:
		return HoldDelivery(s.tx, s.failure, false)
	}
	r.Failure = s.failure
	if s.Overcome {
		return nil // a session has gone on since
	}
	return HoldDelivery(s.tx, s.failure, true)
}

// Run settles what a session left in flight, in a transaction of its own. It is safe beside a live hook and beside
// itself. It leaves corrupt state untouched and returns an error that matches [inbox.ErrCorrupt].
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

// Report says what a recovery did. Its JSON is the output of `recover --json`.
type Report struct {
	Action  Action            `json:"action"`
	EntryID string            `json:"entry_id,omitempty"`
	ID      string            `json:"id,omitempty"`
	Start   int64             `json:"start_offset"`
	End     int64             `json:"end_offset"`
	Attempt int               `json:"attempt,omitempty"`
	Session string            `json:"session_id,omitempty"`
	Reason  inbox.Reason      `json:"reason,omitempty"`  // of a dead letter
	Said    inbox.VerdictKind `json:"verdict,omitempty"` // the agent's, if it decided
	// Owner is the live owner of an entry that was left alone.
	Owner    *Owner         `json:"-"`
	Failure  *inbox.Failure `json:"failure,omitempty"`
	Cursor   int64          `json:"cursor"`
	Warnings []string       `json:"warnings,omitempty"`
}

func reportOf(d *inbox.Delivery, a Action) Report {
	return Report{
		Action: a, EntryID: d.EntryID, ID: d.ID(), Start: d.StartOffset, End: d.EndOffset,
		Attempt: d.Attempt, Session: d.SessionID,
	}
}

// String returns the report as one sentence.
func (r Report) String() string {
	entry := fmt.Sprintf("the entry %s, attempt %d,", words.Name(r.ID, r.EntryID), r.Attempt)
	if r.Said != "" {
		became := map[Action]string{Answered: "answered", Requeued: "given back", DeadLettered: fmt.Sprintf("a dead letter (%s)", r.Reason)}
		if as := became[r.Action]; as != "" {
			return fmt.Sprintf("%s is %s, as its agent said (%s)", entry, as, r.Said)
		}
	}
	switch r.Action {
	case Owned:
		return r.Owner.String() + ": it is left to that one"
	case Cleared:
		return entry + " was answered before: only its note was left, and is gone"
	case Answered:
		return entry + " was answered, as the transcript tells, although the end of its turn was not noted"
	case DeadLettered:
		return fmt.Sprintf("%s is a dead letter (%s)", entry, r.Reason)
	case Requeued:
		if r.Failure == nil {
			return entry + " will be delivered again"
		}
		why := words.Brief(r.Failure.String())
		if why != "" {
			why = " (" + why + ")"
		}
		return entry + " will be delivered again, but not now: its turn ended in an error" + why + ", see heartbeat status"
	case Returned:
		return entry + " never arrived, and will be delivered again"
	case Dropped:
		return entry + " is dropped"
	}
	return "nothing was in flight"
}
