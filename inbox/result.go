package inbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/flat"
)

// Result is one line of .results.jsonl: an entry that was answered.
type Result struct {
	EntryID         string                     `json:"entry_id"`
	ID              string                     `json:"id,omitempty"`
	Metadata        map[string]json.RawMessage `json:"metadata,omitempty"`
	StartOffset     int64                      `json:"start_offset"`
	EndOffset       int64                      `json:"end_offset"`
	Attempt         int                        `json:"attempt"`
	SessionID       string                     `json:"session_id,omitempty"`
	PromptID        string                     `json:"prompt_id,omitempty"`
	DeliveredAt     time.Time                  `json:"delivered_at"`
	AcknowledgedAt  time.Time                  `json:"acknowledged_at"`
	Prompt          string                     `json:"prompt,omitempty"`    // its first 200 characters
	TextFile        string                     `json:"text_file,omitempty"` // where a long text was
	Reply           string                     `json:"reply"`               // the agent's last message
	Result          string                     `json:"result,omitempty"`    // what the agent handed over
	Said            bool                       `json:"said_done,omitempty"` // as in a [Verdict]
	Check           *Check                     `json:"check,omitempty"`
	Accepted        Reason                     `json:"accepted,omitempty"`         // of a late answer, why it was set aside: see [Tx.Accept]
	BackgroundTasks json.RawMessage            `json:"background_tasks,omitempty"` // tasks that went on after its turns: "id", "type", "description", "cut_off"
	FirstSeq        int64                      `json:"first_seq,omitempty"`        // the commit of its first delivery
	Cost                                       // as far as it was known at that time
}

// Answer returns the result that the agent handed over, or else its reply.
func (r Result) Answer() string { return cmp.Or(r.Result, r.Reply) }

// Task is something that an entry left running after its turns.
type Task struct {
	ID          string `json:"id"`
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
	// CutOff means that the task was still running when the entry was acknowledged.
	CutOff bool `json:"cut_off,omitempty"`
}

func resultOf(d *Delivery, reply string, now time.Time) Result {
	id, text, meta := decodeLine(d.exact())
	return Result{
		EntryID: d.EntryID, ID: id, Metadata: meta,
		StartOffset: d.StartOffset, EndOffset: d.EndOffset,
		Attempt: d.Attempt, SessionID: d.SessionID, PromptID: d.PromptID,
		DeliveredAt: d.DeliveredAt, AcknowledgedAt: now, Prompt: firstCharacters(text), TextFile: d.TextFile, Reply: reply,
		FirstSeq: d.First(), Check: d.Check.kept(),
	}
}

// keptPrompt is the number of characters of an entry's text that its result keeps. Acknowledging records carry them.
const keptPrompt = 200

func firstCharacters(text string) string {
	n := 0
	for at := range text {
		if n == keptPrompt {
			return text[:at]
		}
		n++
	}
	return text
}

func (r Result) encode() ([]byte, error) {
	var o flat.Object
	o.String("entry_id", r.EntryID)
	o.Text("id", r.ID)
	if len(r.Metadata) > 0 {
		meta, err := flat.JSON(r.Metadata)
		if err != nil {
			return nil, err
		}
		o.Raw("metadata", meta)
	}
	o.Int("start_offset", r.StartOffset)
	o.Int("end_offset", r.EndOffset)
	o.Int("attempt", int64(r.Attempt))
	o.Text("session_id", r.SessionID)
	o.Text("prompt_id", r.PromptID)
	o.Time("delivered_at", r.DeliveredAt)
	o.Time("acknowledged_at", r.AcknowledgedAt)
	o.Text("prompt", r.Prompt)
	o.Text("text_file", r.TextFile)
	o.String("reply", r.Reply)
	o.Text("result", r.Result)
	if r.Said {
		o.Bool("said_done", true)
	}
	if err := flat.Pointer(flat.To(&o), "check", &r.Check); err != nil {
		return nil, err
	}
	o.Text("accepted", string(r.Accepted))
	o.Raw("background_tasks", r.BackgroundTasks)
	if r.FirstSeq != 0 {
		o.Int("first_seq", r.FirstSeq)
	}
	_ = r.Cost.Members(flat.To(&o)) // only reading can fail
	return o.End(), nil
}

// EventKind is what happened.
type EventKind string

// The events in .events.jsonl. What happens to every entry is not among them: its result or dead letter records that.
const (
	EventScheduled   EventKind = "scheduled"
	EventRedelivered EventKind = "redelivered"
	EventDropped     EventKind = "dropped"
	EventElsewhere   EventKind = "resolved elsewhere" // a run no longer needs its entry; counted as "dropped"
	EventRequeued    EventKind = "requeued"
	EventPurged      EventKind = "purged"
	EventLate        EventKind = "late answer" // a dead letter's turn has ended
	EventAccepted    EventKind = "accepted"    // a late answer became the result
	EventFailed      EventKind = "failed"      // a turn ended in an error
	EventStarted     EventKind = "session started"
	EventEnded       EventKind = "session ended"
	EventAsked       EventKind = "session asks"
	EventPaused      EventKind = "paused"
	EventBackingOff  EventKind = "backing off"     // delivery waits after an error
	EventResumed     EventKind = "resumed"         // a back-off or a pause is over
	EventReplaced    EventKind = "replaced"        // the inbox is another file
	EventOlder       EventKind = "state older"     // older than the results, as after a restore
	EventSettled     EventKind = "settled before"  // a restored line with a known outcome was passed: see Reason
	EventRemoved     EventKind = "removed by hand" // ".in-flight" was; the entry stays in flight
	EventSetBack     EventKind = "cursor set back"
	EventDetached    EventKind = "detached"    // an entry that was given back is in no inbox
	EventUncounted   EventKind = "not counted" // spending, while limits are set
	EventUntold      EventKind = "notify failed"
	EventSaid        EventKind = "verdict" // of an agent: see [Verdict]
	EventProgress    EventKind = "progress"
	EventCheckFailed EventKind = "check failed" // the agent continues, or the entry is set aside: see Reason
	EventUnchecked   EventKind = "not checked"  // the check could not be run, and is retried: see Reason
	EventMended      EventKind = "mended"       // by "fsck --repair": see Reason
	EventContested   EventKind = "contested"    // another Stop hook continued an answered entry's turn: see Reason
)

// Event is one line of .events.jsonl.
type Event struct {
	At          time.Time  `json:"at"`
	Event       EventKind  `json:"event"`
	EntryID     string     `json:"entry_id,omitempty"`
	ID          string     `json:"id,omitempty"`
	Start       int64      `json:"start_offset,omitempty"`
	Attempt     int        `json:"attempt,omitempty"`
	Uncounted   bool       `json:"uncounted,omitempty"` // not among the attempts
	Session     string     `json:"session_id,omitempty"`
	DeliveredAt *time.Time `json:"delivered_at,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Until       *time.Time `json:"until,omitempty"`
	RawLine     string     `json:"raw_line,omitempty"` // of a detached entry
	RawBase64   string     `json:"raw_base64,omitempty"`
	Cost                   // so far, of an entry that was given back or dropped
}

// NeverArrived is the reason of [EventRedelivered] if the delivery does not count as an attempt.
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

// NoteUntold records that a person could not be notified.
func (t *Tx) NoteUntold(reason string) error {
	t.addEvent(Event{Event: EventUntold, Reason: reason})
	return t.failed
}

// latencySeconds are the upper bounds of the latency classes, for the time from an entry's delivery to its
// acknowledgement.
var latencySeconds = [...]int64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200}

// Totals are counts since the inbox's journal began. They only grow, and do not depend on which results and
// dead letters are kept.
type Totals struct {
	Delivered   int64            `json:"delivered"` // including redeliveries
	Redelivered int64            `json:"redelivered"`
	Answered    int64            `json:"answered"`
	Checked     int64            `json:"checked"` // answered with a passed check
	Dropped     int64            `json:"dropped"`
	DeadLetters map[Reason]int64 `json:"dead_letters,omitempty"`
	// Latency counts the answers by the time from delivery to acknowledgement.
	Latency    []LatencyClass `json:"latency,omitempty"`
	LatencySum time.Duration  `json:"latency_sum_ns"`
	// LastAcknowledgedAt is nil until an entry was answered.
	LastAcknowledgedAt *time.Time `json:"last_acknowledged_at,omitempty"`

	latency     [len(latencySeconds) + 1]int64
	deadLetters json.RawMessage // as encoded in the journal
}

// LatencyClass counts the answers that took at most Within (0: any time) and longer than the previous class allows.
type LatencyClass struct {
	Within time.Duration `json:"within_ns,omitempty"`
	Count  int64         `json:"count"`
}

// count changes the totals with the next commit.
func (t *Tx) count(change func(*Totals)) {
	n, err := t.readTotals()
	if err != nil {
		t.warn("the totals start again from 0: %v", err)
		n = new(Totals)
		t.totals = n
	}
	change(n)
}

func (t *Tx) readTotals() (_ *Totals, err error) {
	if t.totals == nil {
		if t.totals, err = decodeTotals(t.st.Totals); err != nil {
			return nil, fmt.Errorf("read journal: totals: %w: %w", ErrCorrupt, err)
		}
	}
	return t.totals, nil
}

func (n *Totals) answered(r Result) {
	n.Answered++
	if r.Check != nil {
		n.Checked++
	}
	n.LastAcknowledgedAt = &r.AcknowledgedAt
	took := max(0, r.AcknowledgedAt.Sub(r.DeliveredAt)) // the clock may have been set back
	n.LatencySum += took
	class := 0
	for class < len(latencySeconds) && took > time.Duration(latencySeconds[class])*time.Second {
		class++
	}
	n.latency[class]++
}

func (n *Totals) deadLettered(r Reason) {
	by := map[Reason]int64{}
	if json.Unmarshal(n.deadLetters, &by) != nil {
		by = map[Reason]int64{}
	}
	by[r]++
	n.deadLetters, _ = flat.JSON(by) // a map of numbers can always be encoded
}

// complete fills in the members that are rarely needed.
func (n Totals) complete() Totals {
	if len(n.deadLetters) > 0 {
		_ = json.Unmarshal(n.deadLetters, &n.DeadLetters) // the record's sum was right
	}
	for i, count := range n.latency {
		c := LatencyClass{Count: count}
		if i < len(latencySeconds) {
			c.Within = time.Duration(latencySeconds[i]) * time.Second
		}
		n.Latency = append(n.Latency, c)
	}
	return n
}

func (n *Totals) members(c flat.Codec) (err error) {
	c.Int("delivered", &n.Delivered)
	c.Int("redelivered", &n.Redelivered)
	c.Int("answered", &n.Answered)
	c.NonZero("checked", &n.Checked)
	c.Int("dropped", &n.Dropped)
	c.Raw("dead_letters", &n.deadLetters)
	counts, sum := strings.Trim(fmt.Sprint(n.latency), "[]"), int64(n.LatencySum)
	c.String("latency", &counts)
	c.Int("latency_sum_ns", &sum)
	n.LatencySum = time.Duration(sum)
	for i, count := range strings.Fields(counts) {
		if c.Reads() && i < len(n.latency) && err == nil {
			n.latency[i], err = strconv.ParseInt(count, 10, 64)
		}
	}
	return cmp.Or(err, flat.Pointer(c, "last_acknowledged_at", &n.LastAcknowledgedAt))
}

func (n *Totals) encode() []byte {
	var o flat.Object
	_ = n.members(flat.To(&o)) // only reading can fail
	return o.End()
}

func decodeTotals(record []byte) (*Totals, error) {
	n := new(Totals)
	if len(record) == 0 {
		return n, nil
	}
	m, err := flat.Parse(record)
	if err != nil {
		return nil, err
	}
	if err := n.members(flat.From(m)); err != nil {
		return nil, err
	}
	return n, m.Err()
}
