package inbox

import (
	"encoding/json"
	"time"

	"heartbeat/internal/price"
)

// Reason says why an entry became a dead letter.
type Reason string

// The reasons that heartbeat gives.
const (
	ReasonOrphaned    Reason = "orphaned"           // its session died or was resumed
	ReasonInterrupted Reason = "interrupted"        // a person ended the turn
	ReasonAsked       Reason = "asked a person"     // it waited for an answer, and nobody was there
	ReasonUnresolved  Reason = "unresolved"         // it was answered, but its task is not done
	ReasonCommand     Reason = "client command"     // the client took it for a command of its own, and asked no model
	ReasonFailed      Reason = "failed"             // the turn ended in an error: see Failure
	ReasonExhausted   Reason = "attempts exhausted" // redelivered as often as allowed
	ReasonTooLong     Reason = "too long"           // over MaxLine, or a long line with too much metadata
	ReasonDied        Reason = "delivery died"      // its delivery was killed again and again
	ReasonExpired     Reason = "expired"            // its expires_at passed before its delivery
	ReasonCanceled    Reason = "canceled"           // taken back before its delivery
	ReasonEmpty       Reason = "empty"              // nothing to deliver: "" or an empty prompt
	ReasonOverBudget  Reason = "over_budget"        // it cost what it may: see Failure
	ReasonLimits      Reason = "invalid limits"     // its limits cannot be understood: see Failure
	ReasonWide        Reason = "not UTF-8"          // its line is UTF-16 or UTF-32: see Failure
	ReasonRejected    Reason = "rejected"           // its agent said that it cannot be done: see Failure
)

// DeadLetter is one line of .dead-letter.jsonl: an entry that was set aside.
type DeadLetter struct {
	EntryID  string                     `json:"entry_id"`
	ID       string                     `json:"id,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	RawLine
	// RawFile names the file, beside this one, that holds what a JSON line
	// cannot: the exact line, if raw_line is empty; otherwise the text, and
	// raw_line is the envelope that was delivered instead.
	RawFile     string     `json:"raw_file,omitempty"`
	StartOffset int64      `json:"start_offset"`
	EndOffset   int64      `json:"end_offset"`
	Attempts    int        `json:"attempts"` // deliveries, 0 if never delivered
	Reason      Reason     `json:"reason"`
	DeliveredAt *time.Time `json:"delivered_at"`
	SessionID   string     `json:"session_id,omitempty"`
	PromptID    string     `json:"prompt_id,omitempty"`
	Failure     *Failure   `json:"failure,omitempty"`
	// FirstSeq and Fields are as in a [Result].
	FirstSeq int64 `json:"first_seq,omitempty"`
	price.Fields
	DeadLetteredAt time.Time `json:"dead_lettered_at"`
}

func deadLetterOf(d *Delivery, reason Reason, now time.Time) DeadLetter {
	id, _, meta := decodeLine(d.rawBytes())
	return DeadLetter{
		EntryID: d.EntryID, ID: id, Metadata: meta, RawLine: d.RawLine, RawFile: d.TextFile,
		StartOffset: d.StartOffset, EndOffset: d.EndOffset,
		Attempts: d.Attempt, Reason: reason, DeliveredAt: &d.DeliveredAt,
		SessionID: d.SessionID, PromptID: d.PromptID, Failure: d.Failure, FirstSeq: d.first(),
		DeadLetteredAt: now,
	}
}
