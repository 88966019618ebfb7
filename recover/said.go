package recover

import (
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// SaidFailed names the failure of an entry whose agent gave it back until its attempts were
// used up, and SaidRejected that of one which its agent rejected.
const (
	SaidFailed   = "failed by its agent"
	SaidRejected = "rejected by its agent"
)

// decideSaid decides about an entry of which its agent said what is to become of it. That
// counts more than how its turn ended: it was committed before.
func decideSaid(f Facts) Decision {
	d := Decision{Verdict: f.Verdict}
	switch f.Verdict.Kind {
	case inbox.VerdictDone:
		if d.Action = Answered; f.Finished != nil {
			d.Reply, _ = f.Finished()
		}
	case inbox.VerdictRejected:
		d.Action, d.Reason = DeadLettered, inbox.ReasonRejected
	default:
		if d.Action, d.Counts = Requeued, true; f.Attempt >= f.MaxAttempts {
			d.Action, d.Reason = DeadLettered, inbox.ReasonExhausted
		}
	}
	return d
}

// carryOutSaid settles an entry as its agent said.
func carryOutSaid(tx *inbox.Tx, d *inbox.Delivery, o Options, decision Decision) error {
	v := decision.Verdict
	switch decision.Action {
	case Answered:
		return tx.AcknowledgeWith(decision.Reply, o.Tasks)
	case DeadLettered:
		failure := SaidFailed
		if v.Kind == inbox.VerdictRejected {
			failure = SaidRejected
		}
		return tx.DeadLetterFor(decision.Reason, failure, v.Text)
	}
	tx.Worked(Worked(d))
	reason := fmt.Sprintf("%s: %s", SaidFailed, words.Brief(v.Text))
	if v.Until == nil {
		return tx.GiveBackFor(reason, true)
	}
	return tx.PutOff(reason, *v.Until)
}
