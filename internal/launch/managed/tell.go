package managed

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// delivery tells that an entry is in flight.
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
	totals, err := v.Totals()
	if err != nil {
		return err
	}
	if f.holds(deliveryKey(d.StartOffset, d.DeliveredAt), totals.Answered-f.before > int64(f.answered)) {
		return nil
	}
	f.delivered(words.Name(d.ID(), d.EntryID), d.StartOffset, d.Attempt, d.DeliveredAt)
	return nil
}

// held is a delivery that is not told yet.
type held struct {
	key   string
	since time.Time
}

// lineWait is how long the line of an outcome may take after its commit.
const lineWait = 5 * time.Second

// holds reports whether a delivery waits to be told. What became of the one before it is
// told first: the journal has it already, its line follows in another file. unread says
// that the journal counts an answer whose line was not read yet.
func (f *follower) holds(key string, unread bool) bool {
	if !f.open && !unread || slices.Contains(f.said, key) {
		return false
	}
	if f.held.key != key {
		f.held = held{key, time.Now()}
		f.recheck.Reset(lineWait)
	}
	return time.Since(f.held.since) < lineWait
}

func deliveryKey(start int64, at time.Time) string {
	return fmt.Sprint(start, at.UnixNano())
}

// saidKept is how many deliveries are remembered. An answer and the delivery after it
// come together, and are read one by one.
const saidKept = 3

// delivered tells of a delivery once, even if its end was seen first.
func (f *follower) delivered(name string, start int64, attempt int, at time.Time) {
	key := deliveryKey(start, at)
	if slices.Contains(f.said, key) {
		return
	}
	f.said = append(f.said[max(0, len(f.said)-saidKept):], key)
	f.open = true
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
		f.open, at = false, latest(at, *l.DeliveredAt)
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
		f.open, at = false, latest(at, *e.DeliveredAt)
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
