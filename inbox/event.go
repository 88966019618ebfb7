package inbox

import (
	"time"
)

// EventKind says what happened.
type EventKind string

// The events that .events.jsonl holds. What every entry goes through is not
// among them: its result or dead letter tells of that.
const (
	EventScheduled   EventKind = "scheduled"          // staged until its time
	EventRedelivered EventKind = "redelivered"        // given back to the queue
	EventDropped     EventKind = "dropped"            // forgotten under the policy drop
	EventElsewhere   EventKind = "resolved elsewhere" // settled, since it was done by other means
	EventRequeued    EventKind = "requeued"           // a dead letter went back into the inbox
	EventPurged      EventKind = "purged"             // a dead letter was thrown away
	EventFailed      EventKind = "failed"             // a turn ended in an error
	EventStarted     EventKind = "session started"    // or resumed
	EventEnded       EventKind = "session ended"
	EventAsked       EventKind = "session asks" // for a person
	EventPaused      EventKind = "paused"
	EventBackingOff  EventKind = "backing off" // after an error
	EventResumed     EventKind = "resumed"
	EventReplaced    EventKind = "replaced" // the inbox was truncated or is another file
	EventDetached    EventKind = "detached" // what was given back stands in no file but this one
)

// Event is one line of .events.jsonl.
type Event struct {
	At      time.Time `json:"at"`
	Event   EventKind `json:"event"`
	EntryID string    `json:"entry_id,omitempty"`
	ID      string    `json:"id,omitempty"` // the envelope's own
	Start   int64     `json:"start_offset,omitempty"`
	Attempt int       `json:"attempt,omitempty"` // deliveries so far
	// Uncounted says that the delivery that this is about is not among those.
	Uncounted bool   `json:"uncounted,omitempty"`
	Session   string `json:"session_id,omitempty"`
	// DeliveredAt is when the delivery was that this is about: of one that was
	// not answered nothing else keeps it.
	DeliveredAt *time.Time `json:"delivered_at,omitempty"`
	// Reason is why, in words; of a failure, its name and message.
	Reason string `json:"reason,omitempty"`
	// Until is when what is scheduled, paused or backing off goes on.
	Until *time.Time `json:"until,omitempty"`
	// RawLine and RawBase64 are the line of an entry that is detached: see [RawLine].
	RawLine   string `json:"raw_line,omitempty"`
	RawBase64 string `json:"raw_base64,omitempty"`
}

// NeverArrived is the reason of [EventRedelivered] where the delivery does not
// count as an attempt.
const NeverArrived = "it never arrived"

func eventOf(d *Delivery, kind EventKind) Event {
	e := Event{
		Event: kind, EntryID: d.EntryID, ID: d.ID(), Start: d.StartOffset,
		Attempt: d.Attempt, Session: d.SessionID,
	}
	if at := d.DeliveredAt; !at.IsZero() {
		e.DeliveredAt = &at
	}
	return e
}
