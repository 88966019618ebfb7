package recover

import (
	"heartbeat/inbox"
	"heartbeat/internal/claude"
)

// Facts are what decides about an entry that is in flight and that nobody will answer:
// its session is gone, or its turn ended in an error.
type Facts struct {
	Attempt int // deliveries that it had
	// Failure is the error of the model's API that ended its turn, nil for none. It
	// decides in place of the policy: an API that is overloaded is no fault of the entry.
	Failure *inbox.Failure
	// Overcome says that a session went on since: the failure is over, and the policy
	// decides.
	Overcome    bool
	Policy      Policy
	MaxAttempts int // for Retry, and for a failure that may be the entry's own fault
	// Reason is why the entry was not answered, as its dead letter says it.
	Reason inbox.Reason
	// Verdict is what the entry's agent said of it, nil for nothing. It decides.
	Verdict *inbox.Verdict
	// Finished says whether it is proven that the turn came to its end, and what was
	// replied; Unreached, whether it is proven that the text never got to the model.
	// Both read a transcript, so they are only called where they count. nil proves
	// nothing.
	Finished  func() (reply string, finished bool)
	Unreached func() bool
}

// Decision is what becomes of the entry.
type Decision struct {
	Action Action
	Reason inbox.Reason // of a dead letter
	Reply  string       // of an entry that was answered
	// Counts says, of one that is delivered again, that the attempt counts.
	Counts bool
	// Verdict is the agent's, if that decided.
	Verdict *inbox.Verdict
}

// Decide is the one rule for orphans and failures. It changes nothing.
func Decide(f Facts) Decision {
	if f.Verdict != nil {
		return decideSaid(f)
	}
	if f.Failure != nil && !f.Overcome {
		return decideFailed(f)
	}
	if f.Finished != nil {
		if reply, finished := f.Finished(); finished {
			return Decision{Action: Answered, Reply: reply}
		}
	}
	switch {
	case f.Unreached != nil && f.Unreached():
		return Decision{Action: Returned}
	case f.Policy == Drop:
		return Decision{Action: Dropped}
	case f.Policy == Retry && f.Attempt < f.MaxAttempts:
		return Decision{Action: Requeued, Counts: true}
	case f.Policy == Retry:
		return Decision{Action: DeadLettered, Reason: inbox.ReasonExhausted}
	case f.Failure != nil:
		return Decision{Action: DeadLettered, Reason: inbox.ReasonFailed}
	case f.Reason != "":
		return Decision{Action: DeadLettered, Reason: f.Reason}
	}
	return Decision{Action: DeadLettered, Reason: inbox.ReasonOrphaned}
}

// decideFailed delivers the entry again, unless the error may be its own fault and its
// attempts are used up.
func decideFailed(f Facts) Decision {
	counts := claude.RemedyFor(f.Failure.Error, f.Failure.Message).Counts
	if counts && f.Attempt >= f.MaxAttempts {
		return Decision{Action: DeadLettered, Reason: inbox.ReasonExhausted}
	}
	return Decision{Action: Requeued, Counts: counts}
}
