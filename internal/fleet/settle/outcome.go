package settle

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/price"
)

// Outcome is what became of an entry.
type Outcome struct {
	Reply     string // of an answer, any length
	Attempts  int    // deliveries to a session, 0 if it never came to one
	SessionID string
	At        time.Time // by the agent's clock, which nothing is decided by
	price.Fields
	Reason string // of a dead letter: an [inbox.Reason], or "max deliver"
	Detail string // of a dead letter: what failed, as far as it is known
}

// Answered is the outcome of an entry that was answered.
func Answered(r inbox.Result) Outcome {
	return Outcome{Reply: r.Answer(), Attempts: r.Attempt, SessionID: r.SessionID, At: r.AcknowledgedAt, Fields: r.Fields}
}

// Letter is a dead letter with what somebody needs to try it again.
type Letter struct {
	Outcome
	// Payload is what the message had. The letter of an inbox knows its text alone, and
	// not even that if it was too long for a line.
	Payload []byte
	// Headers are lines NAME:VALUE that the message had from its sender.
	Headers [][]byte
	// History has a line for what happened to the message, in order. The first 50 are
	// sent, 1 KB of each, and 40 KB of all.
	History []string
}

// Failed is the dead letter of an entry.
func Failed(d inbox.DeadLetter) Letter {
	l := Letter{
		Outcome: Outcome{
			Attempts: d.Attempts, SessionID: d.SessionID, At: d.DeadLetteredAt, Fields: d.Fields,
			Reason: string(d.Reason),
		},
		Payload: []byte(inbox.Letter{DeadLetter: d}.Text()),
	}
	if d.Failure != nil {
		l.Detail = d.Failure.String()
	}
	return l
}

// Fate is what a message came to upstream.
type Fate struct {
	// Outcome is what this agent's outcome counts as.
	Outcome Word
	// Decision is the one that counts; another agent's if this one was [Superseded].
	Decision Record
	// Left is a sentence if the message could not be taken off the stream, and need not
	// be: the stream was recreated, or its consumer, which will hand it out as known.
	Left string
}
