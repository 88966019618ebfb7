package inbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heartbeat/internal/words"
)

// Reason says why an entry became a dead letter.
type Reason string

// The reasons that heartbeat gives.
const (
	ReasonOrphaned    Reason = "orphaned"       // its session died or was resumed
	ReasonInterrupted Reason = "interrupted"    // a person ended its turn
	ReasonAsked       Reason = "asked a person" // its session asked, and nobody answered
	ReasonStopped     Reason = "stopped"        // its launcher or host was told to end
	ReasonUnresolved  Reason = "unresolved"     // its answer left a run's effect without a result
	ReasonCommand     Reason = "client command" // the client took it for its own, such as /cost
	ReasonFailed      Reason = "failed"         // its turn ended in an error: see Failure
	ReasonExhausted   Reason = "attempts exhausted"
	ReasonTooLong     Reason = "too long"      // over 64 MiB, or over 2 MiB with more than 64 KiB beside its prompt
	ReasonDied        Reason = "delivery died" // the hook was killed three times while it read the entry
	ReasonExpired     Reason = "expired"
	ReasonCanceled    Reason = "canceled"
	ReasonEmpty       Reason = "empty"
	ReasonOverBudget  Reason = "over_budget" // it reached its limit: see Failure
	ReasonLimits      Reason = "invalid limits"
	ReasonWide        Reason = "not UTF-8"    // it is UTF-16 or UTF-32: see Failure
	ReasonRejected    Reason = "rejected"     // its agent said that it cannot be done: see Failure
	ReasonCheckFailed Reason = "check_failed" // as often as it may: see Check
	ReasonUnchecked   Reason = "unchecked"    // its check never ran to an end: see Check
	ReasonCheck       Reason = "unknown check"
)

// Reasons returns every reason that heartbeat gives.
func Reasons() []Reason {
	return []Reason{
		ReasonOrphaned, ReasonInterrupted, ReasonAsked, ReasonStopped, ReasonUnresolved, ReasonCommand, ReasonFailed, ReasonExhausted,
		ReasonTooLong, ReasonDied, ReasonExpired, ReasonCanceled, ReasonEmpty, ReasonOverBudget, ReasonLimits, ReasonWide, ReasonRejected,
		ReasonCheckFailed, ReasonUnchecked, ReasonCheck,
	}
}

// DeadLetter is one line of .dead-letter.jsonl: an entry that was set aside.
type DeadLetter struct {
	EntryID  string                     `json:"entry_id"`
	ID       string                     `json:"id,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	RawLine
	// RawFile names a file beside this one for content that is too long for JSON. If raw_line is empty, the file holds
	// the exact line. Otherwise it holds the text, and raw_line is the envelope that was delivered instead.
	RawFile     string     `json:"raw_file,omitempty"` // the file with the line; beside a raw_line, with its text
	StartOffset int64      `json:"start_offset"`
	EndOffset   int64      `json:"end_offset"`
	Attempts    int        `json:"attempts"`
	Reason      Reason     `json:"reason"`
	DeliveredAt *time.Time `json:"delivered_at"`
	SessionID   string     `json:"session_id,omitempty"`
	PromptID    string     `json:"prompt_id,omitempty"`
	Failure     *Failure   `json:"failure,omitempty"`
	Check       *Check     `json:"check,omitempty"`
	// FirstSeq and Cost are as in a [Result].
	FirstSeq int64 `json:"first_seq,omitempty"`
	Cost
	DeadLetteredAt time.Time `json:"dead_lettered_at"`
}

// deadLetterOf returns the dead letter of an entry in all its deliveries, of which there may be none.
func (t *Tx) deadLetterOf(d *Delivery, reason Reason) DeadLetter {
	id, _, meta := decodeLine(d.exact())
	dead := DeadLetter{
		EntryID: d.EntryID, ID: id, Metadata: meta, RawLine: d.RawLine, RawFile: d.TextFile,
		StartOffset: d.StartOffset, EndOffset: d.EndOffset, Attempts: d.Attempt, Reason: reason,
		SessionID: d.SessionID, PromptID: d.PromptID, Failure: d.Failure, Check: d.Check.kept(), FirstSeq: d.First(),
		Cost: t.accountant.CostOf(d), DeadLetteredAt: t.box.utcNow(),
	}
	if !d.DeliveredAt.IsZero() {
		dead.DeliveredAt = &d.DeliveredAt
	}
	return dead
}

// One transaction sets aside at most asideLines entries and about asideBytes of their bytes.
const (
	asideLines = 1000
	asideBytes = 1 << 20
)

// SetAside returns what [Tx.Next] set aside, one element for each reason.
func (t *Tx) SetAside() []SetAside { return t.aside }

func (t *Tx) noteAside(reason Reason, e Entry) {
	t.aside = AddSetAside(t.aside, SetAside{Reason: reason, Count: 1, Entry: words.Name(e.ID, e.EntryID), Start: e.Start, End: e.End})
	t.asideLines++
}

// setAsideGivenBack makes a dead letter of an entry that was given back.
func (t *Tx) setAsideGivenBack(d *Delivery, reason Reason) {
	t.deadLetter(t.deadLetterOf(d, reason))
	t.noteAside(reason, d.Entry())
	t.pass(d)
}

// setAsideWhole keeps the bytes of a line, whose id is known, in a file of their own. That file is durable
// before the commit of the dead letter that names it.
func (t *Tx) setAsideWhole(l line, reason Reason) error {
	name, err := t.box.spill(t.file, l)
	if err != nil {
		return err
	}
	t.setAsideUnread(Entry{EntryID: l.id, Start: l.start, End: l.end}, reason, name, nil)
	return nil
}

func (t *Tx) setAsideUnread(e Entry, reason Reason, rawFile string, failure *Failure) {
	t.noteAside(reason, e)
	t.asideBytes += len(e.raw)
	dead := t.unread(e, reason)
	dead.RawFile, dead.Failure = rawFile, failure
	t.deadLetter(dead)
	t.moveCursor(e.Start, e.End)
}

// unread returns the dead letter of an entry from the queue. If it was put off before, that counts.
func (t *Tx) unread(e Entry, reason Reason) DeadLetter {
	t.resume(&e)
	d := e.delivery()
	d.Attempt = max(0, d.Attempt-1)
	t.forgetEarlier(e.EntryID)
	dead := t.deadLetterOf(d, reason)
	dead.ID, dead.Metadata = e.ID, e.Metadata // a long line is left out
	return dead
}

// Refuse sets aside the entry that [Tx.Next] returned last, instead of delivering it. why is for a person.
func (t *Tx) Refuse(e Entry, reason Reason, why string) error {
	if e.offer == nil || e.offer != t.offered {
		return fmt.Errorf("set aside: %w", errNotOffered)
	}
	t.offered = nil
	failure := t.failure(string(reason), why)
	d := t.redeliver
	if d == nil || d.EntryID != e.EntryID || d.StartOffset != e.Start {
		t.setAsideUnread(e, reason, e.textFile, failure)
		return nil
	}
	with := *d
	with.Failure = failure
	t.setAsideGivenBack(&with, reason)
	return nil
}

// SetAside counts entries that became dead letters while the next entry was sought.
type SetAside struct {
	Reason Reason
	Count  int
	// Entry names the first of them: its own id, or the first digits of its entry id.
	Entry string
	// Start and End are the range of the inbox that holds them.
	Start, End int64
}

// String returns a sentence for a person.
func (s SetAside) String() string {
	if s.Count == 1 {
		return fmt.Sprintf("the entry %s is a dead letter, %s", s.Entry, s.Reason)
	}
	return fmt.Sprintf("%d entries, the first of them %s, are dead letters, %s", s.Count, s.Entry, s.Reason)
}

// AddSetAside adds to all what more transactions set aside, and keeps one element for each reason.
func AddSetAside(all []SetAside, more ...SetAside) []SetAside {
	for _, m := range more {
		i := slices.IndexFunc(all, func(s SetAside) bool { return s.Reason == m.Reason })
		if i < 0 {
			all = append(all, m)
			continue
		}
		s := &all[i]
		s.Count += m.Count
		s.Start, s.End = min(s.Start, m.Start), max(s.End, m.End)
	}
	return all
}
