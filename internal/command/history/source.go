// Package history reconstructs what happened to the entries of an inbox from results, dead letters, events, and
// what waits or is in flight.
package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/lines"
	"heartbeat/internal/words"
)

// ParseResult reads a line of .results.jsonl.
func ParseResult(l []byte) (r inbox.Result, ok bool) {
	ok = json.Unmarshal(l, &r) == nil && r.EntryID != ""
	return r, ok
}

// letter is a line of .dead-letter.jsonl.
type letter struct {
	inbox.Letter
	mark bool // the line records what became of an earlier letter
}

func parseLetter(l []byte) (letter, bool) {
	d, mark, ok := inbox.ParseLetter(l)
	return letter{d, mark}, ok
}

func parseEvent(l []byte) (e inbox.Event, ok bool) {
	ok = json.Unmarshal(l, &e) == nil && e.Event != ""
	return e, ok
}

// Contested returns, by entry id, what other hooks objected to turns whose entries were settled as answered.
func Contested(box *inbox.Inbox) (map[string]string, error) {
	by := map[string]string{}
	_, err := events(box).Each(0, func(e inbox.Event, _ []byte) {
		if e.Event == inbox.EventContested {
			by[e.EntryID] = e.Reason
		}
	})
	return by, err
}

func resultEvents(r inbox.Result) []Event {
	answered := Event{
		At: known(r.AcknowledgedAt), Event: Answered, ID: r.ID, EntryID: r.EntryID,
		Attempt: r.Attempt, SessionID: r.SessionID, Reply: new(r.Answer()), Check: r.Check, Cost: r.Cost, first: r.FirstSeq,
	}
	if !r.DeliveredAt.IsZero() && answered.At != nil {
		answered.LatencyMS = new(max(0, r.AcknowledgedAt.Sub(r.DeliveredAt)).Round(time.Millisecond).Milliseconds())
	}
	answered.began = r.DeliveredAt
	delivered := deliveredBefore(answered, r.DeliveredAt, r.AcknowledgedAt)
	if r.Accepted != "" {
		delivered.told = true // by its dead letter, which has the rest, too
		return []Event{delivered, answered}
	}
	return []Event{queuedBefore(delivered, r.StartOffset, r.Metadata), delivered, answered}
}

// letterEvents returns the events of a dead letter, or the requeue that a mark records.
func letterEvents(l letter) []Event {
	switch {
	case l.mark && l.RequeuedAt == nil:
		return nil // an event records that
	case l.mark:
		return []Event{{At: l.RequeuedAt, Event: string(inbox.EventRequeued), ID: l.ID, EntryID: l.EntryID, Reason: "dead letter " + l.Letter.Letter}}
	}
	dead := Event{
		At: known(l.DeadLetteredAt), Event: DeadLettered, ID: l.ID, EntryID: l.EntryID,
		Attempt: l.Attempts, SessionID: l.SessionID, Reason: string(l.DeadLetter.Reason), Failure: l.Failure, Check: l.Check,
		Cost: l.Cost, first: l.FirstSeq,
	}
	switch l.DeadLetter.Reason {
	case inbox.ReasonExpired:
		dead.Event = Expired
	case inbox.ReasonCanceled:
		dead.Event = Canceled
	}
	if l.DeliveredAt == nil && l.EndOffset == 0 { // it was scheduled, and never in the queue
		return []Event{dead}
	}
	if l.DeliveredAt == nil {
		return []Event{queuedBefore(dead, l.StartOffset, l.Metadata), dead}
	}
	delivered := deliveredBefore(dead, *l.DeliveredAt, l.DeadLetteredAt)
	dead.began = *l.DeliveredAt
	return []Event{queuedBefore(delivered, l.StartOffset, l.Metadata), delivered, dead}
}

func recordedEvents(e inbox.Event) []Event {
	recorded := Event{
		At: known(e.At), Event: string(e.Event), ID: e.ID, EntryID: e.EntryID,
		Attempt: e.Attempt, SessionID: e.Session, Reason: e.Reason, Until: e.Until, Uncounted: e.Uncounted,
		Cost: e.Cost,
	}
	if e.DeliveredAt == nil {
		return []Event{recorded}
	}
	delivered := deliveredBefore(recorded, *e.DeliveredAt, e.At)
	recorded.began = *e.DeliveredAt
	if e.Uncounted {
		delivered.Attempt++ // the attempt counted at its delivery
	}
	return []Event{delivered, recorded}
}

func deliveryEvents(d *inbox.Delivery) []Event {
	delivered := deliveredBefore(Event{ID: d.ID(), EntryID: d.EntryID, Attempt: max(1, d.Attempt), SessionID: d.SessionID}, d.DeliveredAt, time.Time{})
	return []Event{queuedBefore(delivered, d.StartOffset, d.Metadata()), delivered}
}

func waitingEvent(w inbox.Waiting) Event {
	return Event{At: queuedAt(w.Metadata), Event: Queued, ID: w.ID, EntryID: w.EntryID, text: words.Brief(w.Text), start: w.Start}
}

// deliveredBefore returns the delivery, at that time, that led to another event.
func deliveredBefore(next Event, at, order time.Time) Event {
	return Event{At: known(at), Event: Delivered, ID: next.ID, EntryID: next.EntryID, Attempt: next.Attempt, SessionID: next.SessionID, order: order}
}

// queuedBefore returns the event that queued the entry of another event.
func queuedBefore(next Event, start int64, metadata map[string]json.RawMessage) Event {
	return Event{At: queuedAt(metadata), Event: Queued, ID: next.ID, EntryID: next.EntryID, order: next.place(), start: start, told: true}
}

// queuedAt is [inbox.Entry.QueuedAt], or nil if that is unknown.
func queuedAt(metadata map[string]json.RawMessage) *time.Time {
	return known(inbox.Entry{Metadata: metadata}.QueuedAt())
}

func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

const maxNotes = 5 // how many foreign lines of a file get a note each

// Source is a file of an inbox with one record a line.
type Source[T any] struct {
	Path  string
	Parse func(l []byte) (T, bool) // false for a foreign line
	What  string                   // what a line is, for the notes
}

// Results returns the source of .results.jsonl.
func Results(box *inbox.Inbox) Source[inbox.Result] {
	return Source[inbox.Result]{box.ResultsPath(), ParseResult, "result"}
}

func letters(box *inbox.Inbox) Source[letter] {
	return Source[letter]{box.DeadLetterPath(), parseLetter, "dead letter"}
}

func events(box *inbox.Inbox) Source[inbox.Event] {
	return Source[inbox.Event]{box.EventsPath(), parseEvent, "event"}
}

// eventsIn returns a source with the events of each record of another.
func eventsIn[T any](s Source[T], eventsOf func(T) []Event) Source[[]Event] {
	parse := func(l []byte) (all []Event, ok bool) {
		record, ok := s.Parse(l)
		if ok {
			all = eventsOf(record)
		}
		return all, ok
	}
	return Source[[]Event]{s.Path, parse, s.What}
}

// Reading is a source that was read to its end, and can be followed.
type Reading[T any] struct {
	source  Source[T]
	tail    *outcomes.Tail
	foreign int
	notes   []string
}

// Each calls f for the last n records, all if n is 0, and returns notes about lines that are no records.
func (s Source[T]) Each(n int, f func(record T, line []byte)) (notes []string, err error) {
	r, err := s.Last(n, f)
	if err != nil {
		return nil, err
	}
	return r.Notes(), r.Close()
}

// Last calls f for the last n records, all if n is 0. The reading has notes about lines that are no records. Close
// it unless there is an error.
func (s Source[T]) Last(n int, f func(record T, line []byte)) (*Reading[T], error) {
	if n == 0 {
		r, _, err := s.read(-1, f)
		return r, err
	}
	for lines := n; ; {
		var records []T
		var raw [][]byte
		r, seen, err := s.read(lines, func(record T, line []byte) {
			records, raw = append(records, record), append(raw, bytes.Clone(line))
		})
		if err != nil || len(records) >= n || seen < lines {
			for i := max(0, len(records)-n); err == nil && i < len(records); i++ {
				f(records[i], raw[i])
			}
			return r, err
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
		lines += max(lines, n-len(records)) // some were foreign
	}
}

func (s Source[T]) fromNow() (*Reading[T], error) {
	tail, err := outcomes.OpenTail(s.Path, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Path, err)
	}
	return &Reading[T]{source: s, tail: tail}, nil
}

// read starts at the last n lines, and returns how many there were.
func (s Source[T]) read(n int, f func(T, []byte)) (r *Reading[T], seen int, err error) {
	r = &Reading[T]{source: s}
	if r.tail, err = outcomes.OpenTail(s.Path, n); err != nil {
		return nil, 0, err
	}
	torn := int64(-1)
	if seen, err = r.Next(f); err == nil {
		torn, err = r.tail.Torn()
	}
	if err != nil {
		_ = r.Close() // only read
		return nil, 0, fmt.Errorf("read %s: %w", s.Path, err)
	}
	if torn >= 0 {
		r.notes = append(r.notes, fmt.Sprintf("%s, offset %d: the last line is not whole: it is left out until it is", s.Path, torn))
	}
	return r, seen, nil
}

// Next calls f for the records that have come since, and returns the number of lines it read.
func (r *Reading[T]) Next(f func(record T, line []byte)) (n int, err error) {
	err = r.tail.Lines(func(l []byte) {
		n++
		if len(bytes.TrimSpace(l)) == 0 {
			return
		}
		if record, ok := r.source.Parse(l); ok {
			f(record, lines.Valid(l))
		} else if r.foreign++; r.foreign <= maxNotes {
			r.notes = append(r.notes, fmt.Sprintf("%s, offset %d: that line is no %s: it is left out", r.source.Path, r.tail.At(), r.source.What))
		}
	})
	if err != nil {
		return n, fmt.Errorf("read %s: %w", r.source.Path, err)
	}
	return n, nil
}

// Notes returns sentences about lines that were left out, each once.
func (r *Reading[T]) Notes() []string {
	notes := r.notes
	if r.foreign > maxNotes {
		notes = append(notes, fmt.Sprintf("%s: %d more lines are no %s: they are left out", r.source.Path, r.foreign-maxNotes, r.source.What))
	}
	r.notes, r.foreign = nil, 0
	return notes
}

// Close closes the file.
func (r *Reading[T]) Close() error { return r.tail.Close() }

// Metadata calls visit with the metadata of each settled entry that is kept. It returns notes on lines left out.
func Metadata(box *inbox.Inbox, visit func(entryID string, metadata map[string]json.RawMessage)) (notes []string, err error) {
	notes, err = Results(box).Each(0, func(r inbox.Result, _ []byte) { visit(r.EntryID, r.Metadata) })
	if err != nil {
		return nil, err
	}
	more, err := letters(box).Each(0, func(l letter, _ []byte) {
		if !l.mark && l.EntryID != "" {
			visit(l.EntryID, l.Metadata)
		}
	})
	return append(notes, more...), err
}

// Special lists what is unusual about a waiting entry; invalid says that its limits cannot be understood.
func Special(w inbox.Waiting, invalid bool) (facts []string) {
	if w.Attempt > 1 {
		facts = append(facts, fmt.Sprintf("attempt %d", w.Attempt))
	}
	if w.Doomed != "" {
		facts = append(facts, string(w.Doomed))
	}
	if w.Torn {
		facts = append(facts, "torn")
	}
	if invalid {
		facts = append(facts, string(inbox.ReasonLimits))
	}
	return facts
}
