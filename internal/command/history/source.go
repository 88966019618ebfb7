package history

import (
	"encoding/json"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// ParseResult reads a line of .results.jsonl.
func ParseResult(l []byte) (inbox.Result, bool) {
	var r inbox.Result
	if json.Unmarshal(l, &r) != nil || r.EntryID == "" {
		return inbox.Result{}, false
	}
	return r, true
}

// letter is a line of .dead-letter.jsonl.
type letter struct {
	inbox.Letter
	mark bool // it says what became of an earlier one
}

func parseLetter(l []byte) (letter, bool) {
	d, mark, ok := inbox.ParseLetter(l)
	return letter{d, mark}, ok
}

func parseEvent(l []byte) (inbox.Event, bool) {
	var e inbox.Event
	if json.Unmarshal(l, &e) != nil || e.Event == "" {
		return inbox.Event{}, false
	}
	return e, true
}

// Contested is what other hooks objected to the turns of entries that are settled as
// answered, by their entry ids.
func Contested(box *inbox.Inbox) (map[string]string, error) {
	by := map[string]string{}
	read, err := events(box).Last(0, func(e inbox.Event, _ []byte) {
		if e.Event == inbox.EventContested {
			by[e.EntryID] = e.Reason
		}
	})
	if err != nil {
		return nil, err
	}
	return by, read.Close()
}

// resultEvents returns what an answered entry went through.
func resultEvents(r inbox.Result) []Event {
	reply := r.Answer()
	answered := Event{
		At: known(r.AcknowledgedAt), Event: Answered, ID: r.ID, EntryID: r.EntryID,
		Attempt: r.Attempt, SessionID: r.SessionID, Reply: &reply, Fields: r.Fields, first: r.FirstSeq,
	}
	if !r.DeliveredAt.IsZero() && answered.At != nil {
		took := max(0, r.AcknowledgedAt.Sub(r.DeliveredAt)).Round(time.Millisecond).Milliseconds()
		answered.LatencyMS = &took
	}
	delivered := Event{
		At: known(r.DeliveredAt), Event: Delivered, ID: r.ID, EntryID: r.EntryID,
		Attempt: r.Attempt, SessionID: r.SessionID, order: r.AcknowledgedAt,
	}
	if r.Accepted != "" {
		return []Event{delivered, answered} // its dead letter tells the rest
	}
	return []Event{queuedBefore(delivered, r.StartOffset, r.Metadata), delivered, answered}
}

// letterEvents returns what a dead letter went through, or from a mark that it was
// requeued.
func letterEvents(l letter) []Event {
	if l.mark && l.RequeuedAt == nil {
		return nil // an event says so
	}
	if l.mark {
		return []Event{{
			At: l.RequeuedAt, Event: string(inbox.EventRequeued), ID: l.ID, EntryID: l.EntryID,
			Reason: letterReason(l.Letter.Letter), letter: letterReason(l.Letter.Letter),
		}}
	}
	dead := Event{
		At: known(l.DeadLetteredAt), Event: DeadLettered, ID: l.ID, EntryID: l.EntryID,
		Attempt: l.Attempts, SessionID: l.SessionID, Reason: string(l.DeadLetter.Reason), Failure: l.Failure,
		Fields: l.Fields, first: l.FirstSeq,
	}
	switch l.DeadLetter.Reason {
	case inbox.ReasonExpired:
		dead.Event = Expired
	case inbox.ReasonCanceled:
		dead.Event = Canceled
	}
	if l.DeliveredAt == nil {
		return []Event{queuedBefore(dead, l.StartOffset, l.Metadata), dead}
	}
	delivered := Event{
		At: known(*l.DeliveredAt), Event: Delivered, ID: l.ID, EntryID: l.EntryID,
		Attempt: l.Attempts, SessionID: l.SessionID, order: l.DeadLetteredAt,
	}
	return []Event{queuedBefore(delivered, l.StartOffset, l.Metadata), delivered, dead}
}

// letterReason is what events call a dead letter.
func letterReason(name string) string { return "dead letter " + name }

func recordedEvents(e inbox.Event) []Event {
	said := Event{
		At: known(e.At), Event: string(e.Event), ID: e.ID, EntryID: e.EntryID,
		Attempt: e.Attempt, SessionID: e.Session, Reason: e.Reason, Until: e.Until, Uncounted: e.Uncounted,
		Fields: e.Fields,
	}
	if e.Event == inbox.EventRequeued {
		said.letter = e.Reason
	}
	if e.DeliveredAt == nil {
		return []Event{said}
	}
	delivered := Event{
		At: known(*e.DeliveredAt), Event: Delivered, ID: e.ID, EntryID: e.EntryID,
		Attempt: e.Attempt, SessionID: e.Session, order: e.At,
	}
	if e.Uncounted {
		delivered.Attempt++ // it counted then
	}
	return []Event{delivered, said}
}

func deliveryEvents(d *inbox.Delivery) []Event {
	delivered := Event{
		At: known(d.DeliveredAt), Event: Delivered, ID: d.ID(), EntryID: d.EntryID,
		Attempt: max(1, d.Attempt), SessionID: d.SessionID,
	}
	return []Event{queuedBefore(delivered, d.StartOffset, d.Metadata()), delivered}
}

func waitingEvent(w inbox.Waiting) Event {
	return Event{At: queuedAt(w.Metadata), Event: Queued, ID: w.ID, EntryID: w.EntryID, text: words.Brief(w.Text), start: w.Start}
}

// queuedBefore returns the event that queued the entry of another event.
func queuedBefore(next Event, start int64, metadata map[string]json.RawMessage) Event {
	return Event{At: queuedAt(metadata), Event: Queued, ID: next.ID, EntryID: next.EntryID, order: next.before(), start: start}
}

// queuedAt is when send appended an entry, or nil if the entry does not say. A
// scheduled entry came into the inbox when it was due, at the earliest.
func queuedAt(metadata map[string]json.RawMessage) *time.Time {
	sent, due := stampIn(metadata, "sent_at"), stampIn(metadata, "not_before")
	if sent != nil && due != nil && due.After(*sent) {
		return due
	}
	return sent
}

func stampIn(metadata map[string]json.RawMessage, name string) *time.Time {
	var at time.Time
	if json.Unmarshal(metadata[name], &at) != nil {
		return nil
	}
	return known(at)
}

func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
