package recover

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/money/charging"
	"heartbeat/internal/words"
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
		if err := charging.Orphan(tx); err != nil {
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
	if v := d.Verdict; v != nil && !sight.NotHandedOver && s.says(v.Kind) {
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

// says reports whether what the agent said decided.
func (s *situation) says(kind inbox.VerdictKind) bool {
	switch kind {
	case inbox.VerdictDone:
		return s.saidDone()
	case inbox.VerdictFailed:
		return !s.over()
	}
	return true
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

// Report says what a recovery did. Its JSON shape is that of `recover --json`.
type Report struct {
	Action  Action       `json:"action"`
	EntryID string       `json:"entry_id,omitempty"`
	ID      string       `json:"id,omitempty"`
	Start   int64        `json:"start_offset"`
	End     int64        `json:"end_offset"`
	Attempt int          `json:"attempt,omitempty"` // deliveries it had
	Session string       `json:"session_id,omitempty"`
	Reason  inbox.Reason `json:"reason,omitempty"` // of a dead letter
	// Said is what the entry's agent said of it, if that decided.
	Said inbox.VerdictKind `json:"verdict,omitempty"`
	// Owner is who has an entry that was kept.
	Owner *Owner `json:"-"`
	// Failure is the error that ended the entry's turn, where that decided.
	Failure *inbox.Failure `json:"failure,omitempty"`
	Cursor  int64          `json:"cursor"`
	// Warnings are sentences about other things that were found and repaired.
	Warnings []string `json:"warnings,omitempty"`
}

func reportOf(d *inbox.Delivery, a Action) Report {
	return Report{
		Action: a, EntryID: d.EntryID, ID: d.ID(), Start: d.StartOffset, End: d.EndOffset,
		Attempt: d.Attempt, Session: d.SessionID,
	}
}

// String is the report as one sentence.
func (r Report) String() string {
	entry := fmt.Sprintf("the entry %s, attempt %d,", words.Name(r.ID, r.EntryID), r.Attempt)
	switch r.Action {
	case Answered, Requeued, DeadLettered:
		if r.Said != "" {
			return fmt.Sprintf("%s is %s, as its agent said (%s)", entry, r.became(), r.Said)
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
		if r.Failure != nil {
			return entry + " will be delivered again, but not now: its turn ended in an error" + inBrackets(words.Brief(r.Failure.String())) + ", see heartbeat status"
		}
		return entry + " will be delivered again"
	case Returned:
		return entry + " never arrived, and will be delivered again"
	case Dropped:
		return entry + " is dropped"
	}
	return "nothing was in flight"
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// became is the action as a participle.
func (r Report) became() string {
	switch r.Action {
	case Requeued:
		return "given back"
	case DeadLettered:
		return fmt.Sprintf("a dead letter (%s)", r.Reason)
	}
	return "answered"
}
