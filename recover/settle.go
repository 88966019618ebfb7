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
	f := a.Flight(tx)
	if f == nil {
		if s := tx.Stale(); s != nil {
			return reportOf(s, Cleared), nil
		}
		return Report{Action: None}, nil
	}
	if o := f.Elsewhere(); o != nil {
		report := reportOf(f.Entry, decide(&situation{owner: o}).action)
		report.Owner = o
		return report, nil
	}
	if !sight.Charged {
		if err := meter.ChargeOrphan(tx); err != nil {
			a.note("what the session spent is not all counted: %v", err)
		}
	}
	at, name, message, unreported := f.unreportedFailure(sight)
	if unreported {
		if err := tx.In(f.Entry.SessionID).FailAt(at, name, message); err != nil {
			return Report{Action: None}, err
		}
	}
	if o := sight.Over; o != nil && !o.Alone {
		if err := PauseForDay(tx, o); err != nil {
			return Report{Action: None}, err
		}
	}
	f.Entry = tx.InFlight() // with the charges and the failure that were just noted
	s := f.situation(sight, unreported)
	row := decide(s)
	report := reportOf(s.d, row.action)
	report.Verdict = s.decidingVerdict()
	if row.action == DeadLettered {
		report.Reason = cmp.Or(row.reason, s.Reason)
	}
	if err := row.write(tx, s, report.Reason); err != nil {
		return report, err
	}
	if s.failure == nil || s.Over != nil {
		return report, nil
	}
	ours := s.d.Verdict == nil // else the verdict decided, and not the failure
	if ours {
		if report.Failure = s.failure; s.Overcome {
			return report, nil // a session has continued since
		}
	}
	return report, HoldDelivery(tx, s.failure, ours)
}

// write applies a fate in the caller's commit. reason is that of a dead letter.
func (w writes) write(tx *inbox.Tx, s *situation, reason inbox.Reason) error {
	switch w.action {
	case Answered:
		reply, finished := s.proof()
		if !finished {
			reply = s.Reply
		}
		return tx.AcknowledgeWith(reply, s.tasks)
	case Dropped:
		return tx.Drop()
	case Returned:
		return tx.GiveBack(inbox.NeverArrived, false)
	case Requeued:
		if w.counts {
			tx.Worked(Worked(s.d))
		}
		if w.waits && s.d.Verdict.Until != nil {
			return tx.PutOff(w.why(s), *s.d.Verdict.Until)
		}
		return tx.GiveBack(w.why(s), w.counts)
	case DeadLettered:
		if w.failure != nil {
			if name, message := w.failure(s); name != "" {
				return tx.DeadLetterFor(reason, name, message)
			}
		}
		return tx.DeadLetter(reason)
	}
	return nil // Owned: nothing changes
}

// situation returns what the fate of the charged entry depends on. unreported says that only the transcript showed its
// failure.
func (f *Flight) situation(sight Sight, unreported bool) *situation {
	a := f.by
	mark, ofRun := effect.MarkOf(f.Entry)
	s := &situation{Sight: sight, d: f.Entry, policy: a.policyFor(ofRun), used: f.Entry.Attempt >= cmp.Or(a.MaxAttempts, DefaultMaxAttempts)}
	if !s.Ended && !s.NotHandedOver && (!s.Overcome || unreported) {
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
	return s
}

// decidingVerdict returns the agent's verdict if it decided the fate, else "".
func (s *situation) decidingVerdict() inbox.VerdictKind {
	v := s.d.Verdict
	switch {
	case v == nil, s.NotHandedOver, v.Kind == inbox.VerdictDone && !s.checked(), v.Kind == inbox.VerdictFailed && s.over():
		return ""
	}
	return v.Kind
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

// Report is what a recovery did. Its JSON is the output of `recover --json`.
type Report struct {
	Action   Action            `json:"action"`
	EntryID  string            `json:"entry_id,omitempty"`
	ID       string            `json:"id,omitempty"`
	Start    int64             `json:"start_offset"`
	End      int64             `json:"end_offset"`
	Attempt  int               `json:"attempt,omitempty"`
	Session  string            `json:"session_id,omitempty"`
	Reason   inbox.Reason      `json:"reason,omitempty"`  // of a dead letter
	Verdict  inbox.VerdictKind `json:"verdict,omitempty"` // the agent's, if it decided
	Owner    *Owner            `json:"-"`                 // the live owner of an entry that was left alone
	Failure  *inbox.Failure    `json:"failure,omitempty"`
	Cursor   int64             `json:"cursor"`
	Warnings []string          `json:"warnings,omitempty"`
}

func reportOf(d *inbox.Delivery, a Action) Report {
	return Report{Action: a, EntryID: d.EntryID, ID: d.ID(), Start: d.StartOffset, End: d.EndOffset, Attempt: d.Attempt, Session: d.SessionID}
}

// String returns the report as one sentence.
func (r Report) String() string {
	entry := fmt.Sprintf("the entry %s, attempt %d,", words.Name(r.ID, r.EntryID), r.Attempt)
	if r.Verdict != "" {
		became := map[Action]string{Answered: "answered", Requeued: "given back", DeadLettered: fmt.Sprintf("a dead letter (%s)", r.Reason)}
		if as := became[r.Action]; as != "" {
			return fmt.Sprintf("%s is %s, as its agent said (%s)", entry, as, r.Verdict)
		}
	}
	switch r.Action {
	case Owned:
		return r.Owner.String() + ": it is left to that one"
	case Cleared:
		return entry + " was answered before: only its note was left, and is gone"
	case Answered:
		return entry + " was answered, as the transcript shows, although no hook noted the end of its turn"
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
