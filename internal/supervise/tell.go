package supervise

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// delivery is the entry in flight, to be told once all that was read that came before it. It
// is nil as long as the outcome of the one before may be in the journal alone, and not yet in
// the files that the others are read from.
func (f *follower) delivery() (toTell *inbox.Delivery, err error) {
	v, err := f.box.View()
	if err != nil {
		return nil, err
	}
	defer func() { _ = v.Close() }() // only read
	if f.waiter, err = v.Waiter(); err != nil {
		return nil, err
	}
	if f.inFlight = v.InFlight(); v.Settling() {
		return nil, nil
	}
	return f.inFlight, nil
}

// saidKept is how many deliveries are remembered. An answer and the delivery after it
// come together, and are read one by one.
const saidKept = 3

// delivered tells of a delivery once, even if its end was seen first.
func (f *follower) delivered(name string, start int64, attempt int, at time.Time) {
	key := fmt.Sprint(start, at.UnixNano())
	if slices.Contains(f.said, key) {
		return
	}
	f.said = append(f.said[max(0, len(f.said)-saidKept):], key)
	text := "delivered " + name
	if attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", attempt)
	}
	f.add(at, text)
	if f.session != nil {
		f.session.note(&f.session.worked)
	}
}

func (f *follower) result(text []byte) {
	var r inbox.Result
	if json.Unmarshal(text, &r) != nil {
		return // an operator's own line
	}
	name := words.Name(r.ID, r.EntryID)
	f.delivered(name, r.StartOffset, r.Attempt, r.DeliveredAt)
	f.answered++
	f.add(latest(r.AcknowledgedAt, r.DeliveredAt), fmt.Sprintf("answered %s in %s: %s", name, words.Took(r.AcknowledgedAt.Sub(r.DeliveredAt)), words.Brief(r.Reply)))
}

// latest keeps an end from being before its beginning, even if the clock was set back.
func latest(end, begin time.Time) time.Time {
	if end.Before(begin) {
		return begin
	}
	return end
}

func (f *follower) letter(raw []byte) {
	l, mark, ok := inbox.ParseLetter(raw)
	if !ok || mark {
		return
	}
	name, at := words.Name(l.ID, l.EntryID), l.DeadLetteredAt
	if l.DeliveredAt != nil {
		f.delivered(name, l.StartOffset, l.Attempts, *l.DeliveredAt)
		at = latest(at, *l.DeliveredAt)
	}
	text := fmt.Sprintf("dead letter %s: %s", name, l.Reason)
	if l.Failure != nil {
		text += ": " + words.Brief(l.Failure.String())
	}
	f.add(at, text)
}

func (f *follower) event(text []byte) {
	var e inbox.Event
	if json.Unmarshal(text, &e) != nil {
		return // an operator's own line
	}
	at := e.At
	if (e.Event == inbox.EventRedelivered || e.Event == inbox.EventDropped) && e.DeliveredAt != nil {
		f.delivered(words.Name(e.ID, e.EntryID), e.Start, e.Attempt, *e.DeliveredAt)
		at = latest(at, *e.DeliveredAt)
	}
	f.add(at, eventLine(e))
	if f.hear != nil {
		f.hear(e)
	}
}

// eventLine is an event in words.
func eventLine(e inbox.Event) string {
	text := string(e.Event)
	if e.EntryID != "" {
		text += " " + words.Name(e.ID, e.EntryID)
	} else if e.Session != "" {
		text += " " + words.Short(e.Session)
	}
	if e.Until != nil {
		text += " until " + words.Stamp(*e.Until)
	}
	if e.Reason != "" {
		text += ": " + words.Brief(e.Reason)
	}
	return text
}
