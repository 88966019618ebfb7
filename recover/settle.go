package recover

import "heartbeat/inbox"

// Action is what became of an orphan.
type Action string

// The actions.
const (
	None         Action = "none"          // nothing was in flight
	Cleared      Action = "cleared"       // it was answered before: only the note of it was left
	DeadLettered Action = "dead-lettered" // see the report's reason
	Requeued     Action = "requeued"      // the next delivery is of this entry
	Returned     Action = "returned"      // likewise, since it had never arrived
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
	// Reason is why the entry was not answered, as the dead letter says it;
	// orphaned, or failed where a failure was recorded, if empty.
	Reason inbox.Reason
	// Unreached, if set, tells whether it is proven that the entry's text never
	// got to whoever should answer it. Such an entry is delivered again under
	// every policy, and the attempt does not count.
	Unreached func(*inbox.Tx) bool
	// Finished, if set, tells whether it is proven that the entry's turn came to its
	// end, although nobody noted that, and what was replied. Such an entry is
	// acknowledged under every policy.
	Finished func(*inbox.Tx) (reply string, finished bool)
}

func (o Options) policy() Policy {
	if o.Policy == "" {
		return DeadLetter
	}
	return o.Policy
}

func (o Options) maxAttempts() int {
	if o.MaxAttempts == 0 {
		return DefaultMaxAttempts
	}
	return o.MaxAttempts
}

// Settle decides about the entry that tx has in flight, if any. The caller
// commits.
func Settle(tx *inbox.Tx, o Options) (Report, error) {
	d := tx.InFlight()
	if d == nil {
		if s := tx.Stale(); s != nil {
			return reportOf(s, Cleared), nil
		}
		return Report{Action: None}, nil
	}
	if o.PolicyOf != nil {
		if p := o.PolicyOf(d); p != "" {
			o.Policy = p
		}
	}
	report := reportOf(d, "")
	reply, finished := "", false
	if o.Finished != nil {
		reply, finished = o.Finished(tx)
	}
	var err error
	switch {
	case finished:
		report.Action, err = Answered, tx.Acknowledge(reply)
	case o.Unreached != nil && o.Unreached(tx):
		report.Action, err = Returned, tx.GiveBack(false)
	case o.policy() == Drop:
		report.Action, err = Dropped, tx.Drop()
	case o.policy() == Retry && d.Attempt < o.maxAttempts():
		report.Action, err = Requeued, tx.GiveBack(true)
	default:
		report.Action, report.Reason = DeadLettered, o.reason(d)
		err = tx.DeadLetter(report.Reason)
	}
	return report, err
}

func (o Options) reason(d *inbox.Delivery) inbox.Reason {
	switch {
	case o.policy() == Retry:
		return inbox.ReasonExhausted
	case d.Failure != nil:
		return inbox.ReasonFailed
	case o.Reason != "":
		return o.Reason
	}
	return inbox.ReasonOrphaned
}
