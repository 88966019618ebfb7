package settle

import (
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/internal/price"
)

// Word is a word for an outcome in the bucket of results.
type Word string

// The outcomes. A decision has one of the first two.
const (
	WasAnswered Word = "answered"
	WasDead     Word = "dead"
	Superseded  Word = "superseded"
)

// State says how far a reply or a dead letter has come.
type State string

// The states. A reply that is Sending belongs to an agent that lives, or was killed: the
// next life of that agent makes it InDoubt, since it cannot know whether it went out.
const (
	NoReply State = "none"    // the message names no subject
	Sending State = "sending" // it is about to be sent
	Sent    State = "sent"    // the server took it
	InDoubt State = "doubt"   // it may have been sent or not, and is not sent again
	Refused State = "refused" // the server, or this package, does not publish to that subject
	Kept    State = "kept"    // the dead letter is in its stream
	// Requeued is of a dead letter whose message was sent again, and is not decided yet.
	Requeued State = "requeued"
)

// Record is the decision about a message: the value under [names.Key] in the bucket of
// results. It has no text, so that every agent may read it; the text is an [Answer].
type Record struct {
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	EntryID string `json:"entry_id,omitempty"`
	// Life tells a decision of this run of the agent from one before a kill.
	Life    string `json:"life"`
	Stream  string `json:"stream"`
	Seq     uint64 `json:"seq"`
	Subject string `json:"subject,omitempty"`
	// Again is [Claim.Again]: a decision that it is dead counts until it is requeued.
	Again       int       `json:"again,omitempty"`
	Outcome     Word      `json:"outcome"`
	Reason      string    `json:"reason,omitempty"`
	Bytes       int64     `json:"bytes,omitempty"` // of the reply
	Attempts    int       `json:"attempts"`
	Copy        uint64    `json:"copy,omitempty"`
	SessionID   string    `json:"session_id,omitempty"`
	At          time.Time `json:"at"` // by the agent's clock
	ReplyState  State     `json:"reply_state,omitempty"`
	LetterState State     `json:"letter_state,omitempty"`
	price.Fields
}

// ParseRecord reads a decision.
func ParseRecord(value []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(value, &r); err != nil {
		return r, fmt.Errorf("read a decision: %w", err)
	}
	if r.Outcome != WasAnswered && r.Outcome != WasDead {
		return r, fmt.Errorf("read a decision: its outcome is %q", r.Outcome)
	}
	return r, nil
}

// of says whether the decision is that of the claim's agent about the claim's entry.
func (r Record) of(c Claim, outcome Word) bool {
	return r.Agent == inJSON(c.Agent) && r.EntryID == inJSON(c.EntryID) && r.Again == c.Again && r.Outcome == outcome
}

// inJSON is what a name becomes that is not UTF-8. What is decided by is the key, which has
// each byte.
func inJSON(name string) string { return string([]rune(name)) }

// holds says whether a message that was requeued so often is decided by it.
func (r Record) holds(again int) bool { return r.Outcome != WasDead || r.Again >= again }

// Answer is the text of an outcome: the value under [names.Answer], or under
// [names.Superseded] if somebody else was first.
type Answer struct {
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	EntryID string `json:"entry_id,omitempty"`
	Again   int    `json:"again,omitempty"`
	Outcome Word   `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Reply   string `json:"reply"`
	// Object names the reply in [names.Replies] if it is too long for a message: then
	// Reply is empty.
	Object    string    `json:"object,omitempty"`
	Bytes     int64     `json:"bytes"`
	Attempts  int       `json:"attempts"`
	SessionID string    `json:"session_id,omitempty"`
	At        time.Time `json:"at"`
	// By is the agent that was first, if that was another.
	By string `json:"by,omitempty"`
	price.Fields
}

// ParseAnswer reads the text of an outcome.
func ParseAnswer(value []byte) (Answer, error) {
	var a Answer
	if err := json.Unmarshal(value, &a); err != nil {
		return a, fmt.Errorf("read an answer: %w", err)
	}
	return a, nil
}
