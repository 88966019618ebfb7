package recover

import (
	"cmp"
	"encoding/json"

	"heartbeat/inbox"
)

// Action is what became of an orphan.
type Action string

// The actions.
const (
	None         Action = "none"          // nothing was in flight
	Cleared      Action = "cleared"       // it was answered before: only the note of it was left
	DeadLettered Action = "dead-lettered" // see the report's reason
	Requeued     Action = "requeued"      // the next delivery is of this entry
	Returned     Action = "returned"      // the same, since it had never arrived
	Dropped      Action = "dropped"
	Answered     Action = "answered" // it had been: see [Options.Finished]
)

// Options are the settings of a recovery. The zero value dead-letters.
type Options struct {
	Policy Policy // DeadLetter if empty
	// PolicyOf, if set, is asked for the policy of an entry; "" is Policy.
	PolicyOf func(*inbox.Delivery) Policy
	// MaxAttempts is for Retry; DefaultMaxAttempts if 0.
	MaxAttempts int
	// Overcome says that a session went on since the entry's turn ended in an error: the
	// error is over then, and the policy decides.
	Overcome bool
	// Reason is why the entry was not answered, as the dead letter says it;
	// orphaned, or failed where a failure was recorded, if empty.
	Reason inbox.Reason
	// Unreached, if set, tells whether it is proven that the entry's text never
	// reached the model. Such an entry is delivered again under
	// every policy, and the attempt does not count.
	Unreached func(*inbox.Tx) bool
	// Finished, if set, tells whether it is proven that the entry's turn came to its
	// end, although nobody noted that, and what was replied. Such an entry is
	// acknowledged under every policy.
	Finished func(*inbox.Tx) (reply string, finished bool)
	// Tasks are those that an entry leaves running which its agent said is done: see
	// [inbox.Tx.AcknowledgeWith].
	Tasks json.RawMessage
	// Charge, if set, books what the entry's session has spent, before the entry is
	// settled: its outcome has what is known of its price.
	Charge func(*inbox.Tx)
}

// Settle decides about the entry that tx has in flight, if any, and keeps delivery back
// where its turn ended in an error (see [HoldDelivery]). The caller commits.
func Settle(tx *inbox.Tx, o Options) (Report, error) {
	d := tx.InFlight()
	if d == nil {
		if s := tx.Stale(); s != nil {
			return reportOf(s, Cleared), nil
		}
		return Report{Action: None}, nil
	}
	if o.Charge != nil {
		o.Charge(tx)
		d = tx.InFlight() // with what was charged to it
	}
	untold, err := noteFailure(tx, d)
	if err != nil {
		return Report{Action: None}, err
	}
	d = tx.InFlight() // with the failure
	f := o.facts(tx, d)
	f.Overcome = f.Overcome && !untold
	decision := Decide(f)
	report := reportOf(d, decision.Action)
	report.Reason = decision.Reason
	if decision.Verdict != nil {
		report.Said = decision.Verdict.Kind
		err := carryOutSaid(tx, d, o, decision)
		if err == nil && f.Failure != nil && !f.Overcome {
			err = HoldDelivery(tx, f.Failure, false) // its turn ended in an error all the same
		}
		return report, err
	}
	if err := carryOut(tx, d, f, decision); err != nil || f.Failure == nil || f.Overcome {
		return report, err
	}
	report.Failure = f.Failure
	if o.Overcome {
		return report, nil // a session went on since
	}
	return report, HoldDelivery(tx, d.Failure, true)
}

// noteFailure records the error of the API that ended the entry's turn, where the client told
// no hook of it and the transcript does. It reports whether there is one.
func noteFailure(tx *inbox.Tx, d *inbox.Delivery) (untold bool, err error) {
	if d.Failure != nil || d.Verdict != nil {
		return false, nil
	}
	name, message, failed := EvidenceOf(d).ByBlock(d).Seen().Failed()
	if !failed {
		return false, nil
	}
	return true, tx.Fail(d.SessionID, name, message)
}

func (o Options) facts(tx *inbox.Tx, d *inbox.Delivery) Facts {
	f := Facts{
		Attempt: d.Attempt, Failure: d.Failure, Overcome: o.Overcome,
		Policy: cmp.Or(o.Policy, DeadLetter), MaxAttempts: cmp.Or(o.MaxAttempts, DefaultMaxAttempts), Reason: o.Reason,
		Verdict: d.Verdict,
	}
	if o.PolicyOf != nil {
		f.Policy = cmp.Or(o.PolicyOf(d), f.Policy)
	}
	if o.Finished != nil {
		f.Finished = func() (string, bool) { return o.Finished(tx) }
	}
	if o.Unreached != nil {
		f.Unreached = func() bool { return o.Unreached(tx) }
	}
	return f
}

func carryOut(tx *inbox.Tx, d *inbox.Delivery, f Facts, decision Decision) error {
	switch decision.Action {
	case Answered:
		return tx.Acknowledge(decision.Reply)
	case Dropped:
		return tx.Drop()
	case DeadLettered:
		return tx.DeadLetter(decision.Reason)
	case Requeued:
		tx.Worked(Worked(d))
		if f.Failure != nil && !f.Overcome {
			return tx.GiveBackFor(d.Failure.String(), decision.Counts)
		}
	}
	return tx.GiveBack(decision.Counts)
}
