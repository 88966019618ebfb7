package managed

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// delivery tells of the entry in flight.
func (f *follower) delivery() error {
	v, err := f.box.View()
	if err != nil {
		return err
	}
	defer func() { _ = v.Close() }() // only read
	if f.waiter, err = v.Waiter(); err != nil {
		return err
	}
	d := v.InFlight()
	if f.inFlight = d; d == nil {
		return nil
	}
	// The answer before it is in the journal already, and in its own file in a moment.
	if f.open && !f.patient && !slices.Contains(f.said, deliveryKey(d.StartOffset, d.Attempt, d.DeliveredAt)) {
		f.patient = true
		f.again.Reset(lineWait)
		return nil
	}
	f.delivered(words.Name(d.ID(), d.EntryID), d.StartOffset, d.Attempt, d.DeliveredAt)
	return nil
}

// lineWait is how long the line of an answer may take that was committed.
const lineWait = 100 * time.Millisecond

func deliveryKey(start int64, attempt int, at time.Time) string {
	return fmt.Sprint(start, attempt, at.UnixNano())
}

const saidKept = 3

// delivered tells of a delivery once, also where its end was seen first.
func (f *follower) delivered(name string, start int64, attempt int, at time.Time) {
	key := deliveryKey(start, attempt, at)
	if slices.Contains(f.said, key) {
		return
	}
	// An answer and the delivery behind it come together, and are read one by one.
	f.said = append(f.said[max(0, len(f.said)-saidKept):], key)
	f.open, f.patient = true, false
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
	f.open = false
	f.add(r.AcknowledgedAt, fmt.Sprintf("answered %s in %s: %s", name, words.Took(r.AcknowledgedAt.Sub(r.DeliveredAt)), words.Brief(r.Reply)))
}

func (f *follower) letter(raw []byte) {
	l, mark, ok := inbox.ParseLetter(raw)
	if !ok || mark {
		return
	}
	f.open = false
	text := fmt.Sprintf("dead letter %s: %s", words.Name(l.ID, l.EntryID), l.Reason)
	if l.Failure != nil {
		text += ": " + words.Brief(l.Failure.String())
	}
	f.add(l.DeadLetteredAt, text)
}

func (f *follower) event(text []byte) {
	var e inbox.Event
	if json.Unmarshal(text, &e) != nil {
		return // an operator's own line
	}
	if e.Event == inbox.EventRedelivered || e.Event == inbox.EventDropped {
		f.open = false
	}
	f.add(e.At, eventLine(e))
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
