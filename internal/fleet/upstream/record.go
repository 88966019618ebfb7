package upstream

import (
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/inbox"
)

// Word names an outcome in the bucket of results.
type Word string

// The outcomes. A decision has one of the first two.
const (
	WasAnswered Word = "answered"
	WasDead     Word = "dead"
	Superseded  Word = "superseded"
)

// State is how far a reply or a dead letter has come.
type State string

// The states. A reply that is Sending belongs to an agent that lives or was killed. The next life of that agent
// makes it InDoubt, since it cannot know whether the reply went out.
const (
	NoReply State = "none"    // the message names no subject
	Sending State = "sending" // about to be sent
	Sent    State = "sent"    // the server took it
	InDoubt State = "doubt"   // it may have been sent, and is not sent again
	Refused State = "refused" // the server, or this package, does not publish to that subject
	Kept    State = "kept"    // the dead letter is in its stream
	// Requeued means that the dead letter's message was sent again and is not decided yet.
	Requeued State = "requeued"
)

// Settled is what a decision and the text of an outcome have in common.
type Settled struct {
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	EntryID string `json:"entry_id,omitempty"`
	// Again counts the requeues before. A decision that the message is dead holds until the message is requeued.
	Again     int       `json:"again,omitempty"` // how often it was requeued
	Outcome   Word      `json:"outcome"`
	Reason    string    `json:"reason,omitempty"` // of a dead letter
	Bytes     int64     `json:"bytes,omitempty"`
	Attempts  int       `json:"attempts"`
	SessionID string    `json:"session_id,omitempty"`
	At        time.Time `json:"at"` // by the agent's clock
	inbox.Cost
}

// Record is the decision about a message: the value under [message.Key] in the bucket of results. It has no text,
// so that every agent may read it; the text is in an [Answer].
type Record struct {
	Settled
	Life        string  `json:"life"` // which run of the agent
	Stream      string  `json:"stream"`
	Seq         uint64  `json:"seq"`
	Subject     string  `json:"subject,omitempty"`
	Copy        uint64  `json:"copy,omitempty"`
	ReplyState  State   `json:"reply_state,omitempty"`
	LetterState State   `json:"letter_state,omitempty"` // as "reply_state"
	Letters     *uint64 `json:"letters,omitempty"`      // earlier letters
}

// ParseRecord reads a decision. It fails unless the outcome is answered or dead.
func ParseRecord(value []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, fmt.Errorf("read a decision: %w", err)
	}
	if r.Outcome != WasAnswered && r.Outcome != WasDead {
		return nil, fmt.Errorf("read a decision: its outcome is %q", r.Outcome)
	}
	return &r, nil
}

// holds reports whether the decision still holds for a message that was requeued again times.
func (r Record) holds(again int) bool { return r.Outcome != WasDead || r.Again >= again }

// Answer is the text of an outcome, under [message.AnswerKey], or under [message.SupersededKey] if it was not the first.
type Answer struct {
	Settled
	Detail string `json:"detail,omitempty"` // of a dead letter: what failed, if known
	Reply  string `json:"reply"`            // of an answer, any length
	// Object names the reply in [message.Replies] if it is too long for a message. Reply is empty then.
	Object string `json:"object,omitempty"`
	// By is the agent that was first, if that was another.
	By string `json:"by,omitempty"`
}

// ParseAnswer reads the text of an outcome.
func ParseAnswer(value []byte) (a Answer, err error) {
	if err = json.Unmarshal(value, &a); err != nil {
		err = fmt.Errorf("read an answer: %w", err)
	}
	return a, err
}

// Answered returns the outcome of an entry that was answered.
func Answered(r inbox.Result) Answer {
	return Answer{
		Settled: Settled{Attempts: r.Attempt, SessionID: r.SessionID, At: r.AcknowledgedAt, Cost: r.Cost},
		Reply:   r.Answer(),
	}
}

// Letter is a dead letter, with all that sending its message again requires.
type Letter struct {
	Answer
	// Payload is the message's. The inbox's dead letter has only the text, and no text that was too long for a line.
	Payload []byte
	// Headers are the sender's own headers as lines NAME:VALUE.
	Headers [][]byte
	// History has a line for each thing that happened to the message. At most 50 are sent, 1 KiB of each, 40 KiB in all.
	History []string
}

// Failed returns the dead letter of an entry.
func Failed(d inbox.DeadLetter) Letter {
	l := Letter{
		Answer: Answer{Settled: Settled{
			Attempts: d.Attempts, SessionID: d.SessionID, At: d.DeadLetteredAt, Cost: d.Cost, Reason: string(d.Reason),
		}},
		Payload: []byte(inbox.Letter{DeadLetter: d}.Text()),
	}
	if d.Failure != nil {
		l.Detail = d.Failure.String()
	}
	return l
}

// By names, within a sentence, who decided: an agent, a person, or somebody whose decision is no longer kept.
func (r Record) By() string {
	switch {
	case r.Agent == "":
		return "somebody whose result is no longer kept"
	case r.Reason == Canceled:
		return "a person"
	}
	return "agent " + r.Agent
}

// Fate is what became of a message upstream.
type Fate struct {
	// Outcome is what this agent's outcome counts as.
	Outcome Word
	// Decision is the decision that counts. It is another agent's if Outcome is [Superseded].
	Decision Record
	// Left is a sentence if the message could not be taken off the stream and need not be, since the stream or its
	// consumer was made anew. A new consumer hands the message out again, and its agent sees the decision.
	Left string
}
