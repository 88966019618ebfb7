package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// What happens to entries besides the kinds of [inbox.Event].
const (
	Queued       = "queued"
	Delivered    = "delivered"
	Answered     = "answered"
	DeadLettered = "dead-lettered"
	Expired      = "expired"  // a dead letter of that reason
	Canceled     = "canceled" // a dead letter of that reason
)

// Event is one thing that happened to an entry or to the inbox.
type Event struct {
	At        *time.Time     `json:"at"` // null: nobody noted it
	Event     string         `json:"event"`
	ID        string         `json:"id,omitempty"`
	EntryID   string         `json:"entry_id,omitempty"`
	Attempt   int            `json:"attempt,omitempty"`
	Uncounted bool           `json:"uncounted,omitempty"` // not among the attempts
	SessionID string         `json:"session_id,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Failure   *inbox.Failure `json:"failure,omitempty"`
	Reply     *string        `json:"reply,omitempty"`
	LatencyMS *int64         `json:"latency_ms,omitempty"` // from delivery to answer
	Until     *time.Time     `json:"until,omitempty"`
	Check     *inbox.Check   `json:"check,omitempty"`
	// Cost is what the entry cost so far, over all attempts.
	inbox.Cost

	first int64     // of an outcome: the commit of the entry's first delivery, 0 if unknown
	order time.Time // where an event without a time belongs, zero: at the end
	began time.Time // of an end: when its delivery began
	text  string    // the shortened text of a queued entry
	start int64     // the offset of a queued entry
	told  bool      // the queue, or the entry's dead letter, has reported it, perhaps before the log was opened
}

// Outcome names the entry whose price the event shows, by entry id and first delivery's commit, or zero values.
func (e Event) Outcome() (entryID string, first int64) {
	if e.first == 0 {
		return "", 0
	}
	return e.EntryID, e.first
}

// String returns the event on one line.
func (e Event) String() string {
	return strings.Join(slices.DeleteFunc(e.Cells(), func(cell string) bool { return cell == "" }), "  ")
}

// Cells returns the columns of the event: when ("-" if nobody noted it), what, to which entry, and details.
func (e Event) Cells() []string { return e.cells(words.Stamp, e.facts(1)) }

// NarrowCells is [Event.Cells] for a terminal: without the current year, with attempts from the second only, and
// without an answer's session, which the delivery before it shows.
func (e Event) NarrowCells(now time.Time) []string {
	if e.Event == Answered {
		e.SessionID = ""
	}
	return e.cells(func(at time.Time) string { return words.Clock(now, at) }, e.facts(2))
}

func (e Event) cells(stamp func(time.Time) string, facts []string) []string {
	at, entry := "-", ""
	if e.At != nil {
		at = stamp(*e.At)
	}
	if e.ID != "" || e.EntryID != "" {
		entry = words.Name(e.ID, e.EntryID)
	}
	text := e.Reason
	switch {
	case e.Reply != nil:
		text = *e.Reply
	case e.Failure != nil:
		text = inbox.Reason(e.Reason).Why(e.Failure)
	case e.Event == Expired, e.Event == Canceled:
		text = "" // the event's name has the reason
	case e.text != "":
		text = e.text
	}
	details := strings.Join(facts, ", ")
	switch text = words.Brief(text); {
	case details == "":
		details = text
	case text != "":
		details += ": " + text
	}
	return []string{at, words.Brief(e.Event), entry, details}
}

// facts lists details. It mentions attempts from the number attempt on.
func (e Event) facts(attempt int) (facts []string) {
	switch {
	case e.Uncounted:
		facts = append(facts, fmt.Sprintf("attempt %d not counted", e.Attempt+1))
	case e.Attempt >= attempt:
		facts = append(facts, fmt.Sprintf("attempt %d", e.Attempt))
	}
	if e.LatencyMS != nil {
		facts = append(facts, words.Took(time.Duration(*e.LatencyMS)*time.Millisecond))
	}
	if e.SessionID != "" {
		facts = append(facts, "session "+words.Short(e.SessionID))
	}
	if c := e.Check; c != nil && e.Event == Answered {
		check := "check " + string(c.Status)
		if c.Tries > 1 {
			check += fmt.Sprintf(" in try %d", c.Tries)
		}
		facts = append(facts, check)
	}
	if cost := price.Of(e.Cost).String(); cost != "" {
		facts = append(facts, cost)
	}
	if e.Until != nil {
		facts = append(facts, "until "+words.Stamp(*e.Until))
	}
	return facts
}

// eventKey tells one event from another.
type eventKey struct {
	event, entryID, session string
	at, start               int64
}

// key is the same for the same event, whichever source reports it.
func (e Event) key() eventKey {
	if e.Event == string(inbox.EventRequeued) && e.Reason != "" { // the reason names the dead letter
		return eventKey{event: e.Reason}
	}
	k := eventKey{event: e.Event, entryID: e.EntryID}
	if e.Event != Queued && e.Event != Delivered { // an answer may come from another session
		k.session = e.SessionID
	}
	if e.At != nil {
		k.at = e.At.UnixNano()
	} else {
		k.start = e.start
	}
	return k
}

// place returns the time to sort the event by. An end comes after its beginning, even if the clock was set back.
func (e Event) place() time.Time {
	switch {
	case e.At == nil:
		return e.order
	case e.At.Before(e.began):
		return e.began
	}
	return *e.At
}

// Sort is a stable sort by time. An event without a time goes before the event known to follow it, or else to the end.
func Sort(all []Event) {
	slices.SortStableFunc(all, func(a, b Event) int {
		switch x, y := a.place(), b.place(); {
		case x.IsZero() == y.IsZero():
			return x.Compare(y)
		case x.IsZero():
			return 1
		}
		return -1
	})
}
