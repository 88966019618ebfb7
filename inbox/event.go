package inbox

import (
	"time"

	"heartbeat/internal/price"
)

// EventKind says what happened.
type EventKind string

// The events that .events.jsonl holds. What happens to every entry is not among
// them: its result or dead letter tells that.
const (
	EventScheduled   EventKind = "scheduled"          // staged until its time
	EventRedelivered EventKind = "redelivered"        // given back to the queue
	EventDropped     EventKind = "dropped"            // forgotten under the policy drop
	EventElsewhere   EventKind = "resolved elsewhere" // settled, because it was done by other means
	EventRequeued    EventKind = "requeued"           // a dead letter went back into the inbox
	EventPurged      EventKind = "purged"             // a dead letter was thrown away
	EventLate        EventKind = "late answer"        // the turn of a dead letter has ended after all
	EventAccepted    EventKind = "accepted"           // what it ended with was made the entry's result
	EventFailed      EventKind = "failed"             // a turn ended in an error
	EventStarted     EventKind = "session started"    // or resumed
	EventEnded       EventKind = "session ended"
	EventAsked       EventKind = "session asks" // for a person
	EventPaused      EventKind = "paused"
	EventBackingOff  EventKind = "backing off" // after an error
	EventResumed     EventKind = "resumed"
	EventReplaced    EventKind = "replaced"        // the inbox was truncated or is another file
	EventOlder       EventKind = "state older"     // than the results: as after a restore
	EventSettled     EventKind = "settled before"  // a line came back whose outcome is known: see Reason
	EventRemoved     EventKind = "removed by hand" // .in-flight was, and the entry stays in flight
	EventSetBack     EventKind = "cursor set back" // by hand
	EventDetached    EventKind = "detached"        // an entry that was given back is in no inbox any more
	EventSessionOver EventKind = "session over"    // its limit: it is given nothing more
	EventUncounted   EventKind = "not counted"     // limits are set, and what a session spends cannot be counted
	EventUntold      EventKind = "notify failed"   // a person could not be told of something
	EventSaid        EventKind = "verdict"         // an agent said what became of its entry: see [Verdict]
	EventProgress    EventKind = "progress"        // an agent said how far it is
	EventMended      EventKind = "mended"          // fsck --repair did: see Reason
	EventContested   EventKind = "contested"       // another hook objected to a turn whose entry was settled as answered
)

// Event is one line of .events.jsonl.
type Event struct {
	At      time.Time `json:"at"`
	Event   EventKind `json:"event"`
	EntryID string    `json:"entry_id,omitempty"`
	ID      string    `json:"id,omitempty"` // the envelope's own
	Start   int64     `json:"start_offset,omitempty"`
	Attempt int       `json:"attempt,omitempty"` // deliveries so far
	// Uncounted says that Attempt does not include the delivery that the event is
	// about.
	Uncounted bool   `json:"uncounted,omitempty"`
	Session   string `json:"session_id,omitempty"`
	// DeliveredAt is when the delivery was that the event is about. If it was not
	// answered, no other file keeps that.
	DeliveredAt *time.Time `json:"delivered_at,omitempty"`
	// Reason is why, in words; for a failure, its name and message.
	Reason string `json:"reason,omitempty"`
	// Until is when a scheduled entry comes due, or a pause or back-off ends.
	Until *time.Time `json:"until,omitempty"`
	// RawLine and RawBase64 are the line of a detached entry: see [RawLine].
	RawLine   string `json:"raw_line,omitempty"`
	RawBase64 string `json:"raw_base64,omitempty"`
	// Fields are what the entry has cost so far, if it was given back or dropped.
	price.Fields
}

// NeverArrived is the reason of [EventRedelivered] if the delivery does not count
// as an attempt.
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

// NoteUntold records that a person could not be told of something.
func (t *Tx) NoteUntold(reason string) error {
	return t.addEvent(Event{Event: EventUntold, Reason: reason})
}
