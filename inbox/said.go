package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// VerdictKind is an agent's verdict on its entry.
type VerdictKind string

// The verdicts.
const (
	VerdictDone     VerdictKind = "done"     // the entry is done, and the text is the result
	VerdictFailed   VerdictKind = "failed"   // the entry is to be tried again; the text says why
	VerdictRejected VerdictKind = "rejected" // the entry must not be tried again; the text says why
)

const (
	// MaxResult is the longest result, in bytes. Each record carries the result until the entry is settled.
	MaxResult = 256 << 10
	// MaxReason is the longest reason or progress note, in bytes.
	MaxReason = 4 << 10
	// MaxPutOff is the longest time for which an entry may be put off, or a progress note holds.
	MaxPutOff = 7 * 24 * time.Hour
)

// Verdict is an agent's own statement on its entry. It is committed when it is made, and carried out when the
// delivery is settled: see package recover.
type Verdict struct {
	Kind  VerdictKind `json:"verdict"`
	Text  string      `json:"text,omitempty"`
	At    time.Time   `json:"at"`
	Until *time.Time  `json:"until,omitempty"` // not tried again before
}

// Check returns an error, worded for the agent, if the verdict is not valid.
func (v Verdict) Check(now time.Time) error {
	most := MaxReason
	switch v.Kind {
	case VerdictDone:
		most = MaxResult
	case VerdictFailed, VerdictRejected:
		if strings.TrimSpace(v.Text) == "" {
			return errors.New("a reason is needed: whoever sent the entry reads it")
		}
	default:
		return fmt.Errorf("there is no verdict %q", v.Kind)
	}
	switch {
	case len(v.Text) > most:
		return fmt.Errorf("the text is %d bytes long, and %d is the most: put it into a file, and say which", len(v.Text), most)
	case !utf8.ValidString(v.Text):
		return errors.New("the text is not UTF-8")
	case v.Until != nil && v.Kind != VerdictFailed:
		return fmt.Errorf("only an entry that failed can be put off, not one that is %s", v.Kind)
	case v.Until != nil && v.Until.Sub(now) > MaxPutOff:
		return fmt.Errorf("an entry can be put off for %v at most", MaxPutOff)
	}
	return nil
}

// Say stores a verdict with the entry in flight, in place of an earlier one.
func (t *Tx) Say(v Verdict) error {
	if t.inFlight == nil {
		return fmt.Errorf("say: %w", errNothingInFlight)
	}
	v.At = t.box.utcNow()
	if err := v.Check(v.At); err != nil {
		return err
	}
	d := *t.inFlight
	d.Verdict = &v
	t.setInFlight(&d)
	e := eventOf(&d, EventSaid)
	e.Reason, e.Until = string(v.Kind), v.Until
	if v.Text != "" {
		e.Reason += ": " + firstCharacters(v.Text)
	}
	t.addEvent(e)
	return t.failed
}

// Progress is an agent's report on its work.
type Progress struct {
	Text  string    `json:"text,omitempty"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until"` // not stuck before
}

// NoteProgress stores with the entry in flight that its agent is at work for that length of time.
func (t *Tx) NoteProgress(text string, length time.Duration) error {
	switch {
	case t.inFlight == nil:
		return fmt.Errorf("note progress: %w", errNothingInFlight)
	case len(text) > MaxReason:
		return fmt.Errorf("the text is %d bytes long, and %d is the most", len(text), MaxReason)
	case !utf8.ValidString(text):
		return errors.New("the text is not UTF-8")
	case length < 0 || length > MaxPutOff:
		return fmt.Errorf("the time is from 0 to %v", MaxPutOff)
	}
	d, now := *t.inFlight, t.box.utcNow()
	d.Progress = &Progress{Text: text, At: now, Until: now.Add(length)}
	t.setInFlight(&d)
	e := eventOf(&d, EventProgress)
	e.Reason, e.Until = firstCharacters(text), &d.Progress.Until
	t.addEvent(e)
	return t.failed
}

// earlier keeps the deliveries of an entry that was put off, from its return to the queue until its next delivery.
type earlier struct {
	EntryID  string        `json:"entry_id"`
	Attempts int           `json:"attempts"`
	FirstSeq int64         `json:"first_seq,omitempty"`
	Spent    string        `json:"spent,omitempty"`
	Took     time.Duration `json:"took_ns,omitempty"`
}

// maxEarlier bounds a list that each record carries. The attempts of an entry that is dropped from it are forgotten.
const maxEarlier = 64

// The bounds keep an edited .scheduled.jsonl from overflowing any sum.
const (
	maxEarlierAttempts = 1 << 30
	maxEarlierTook     = 100 * 365 * 24 * time.Hour
)

// PutOff gives the entry in flight back, to be delivered again after a time: it goes to .scheduled.jsonl and
// from there to the end of the queue, while other entries go on. The delivery counts as an attempt. An entry
// whose text is in a file of its own keeps its place, and is delivered again at once.
func (t *Tx) PutOff(reason string, until time.Time) error {
	d := t.inFlight
	if d == nil {
		return fmt.Errorf("put off: %w", errNothingInFlight)
	}
	if !until.After(t.box.utcNow()) || d.TextFile != "" {
		return t.GiveBack(reason, true)
	}
	was := earlier{EntryID: d.EntryID, Attempts: d.Attempt, FirstSeq: d.First(), Spent: d.Spent, Took: d.Took + t.worked}
	var line flat.Object // the entry's own line, byte for byte, and the time of its return
	line.Text(idMember, d.ID())
	line.Time(notBeforeMember, until)
	line.String("raw_line", d.RawLine.Text)
	line.Text("raw_base64", d.RawLine.Base64)
	line.Raw(putOffMember, t.encoded(was))
	e := eventOf(d, EventRedelivered)
	e.Reason, e.Until, e.Cost = reason, &until, t.accountant.CostOf(d)
	t.addJSON(journal.Scheduled, slices.Clone(line.End()))
	t.count(func(n *Totals) { n.Redelivered++ })
	t.pass(d)
	t.addEvent(e)
	return t.failed
}

const putOffMember = "put_off"

// parsePutOff reads a line that PutOff wrote. ok is false for any other line.
func parsePutOff(l []byte, m *flat.Members) (s Scheduled, ok bool) {
	if !m.Has(putOffMember) || m.Has(promptMember) {
		return s, false // a line with a prompt was sent, with metadata of that name
	}
	line := RawLine{Text: m.String("raw_line"), Base64: m.String("raw_base64")}
	raw, err := line.Bytes()
	at := m.Time(notBeforeMember)
	was := new(earlier)
	if err != nil || m.Err() != nil || at.IsZero() || blank(raw) || bytes.ContainsRune(raw, '\n') || len(raw) > MaxLine || json.Unmarshal(m.Raw(putOffMember), was) != nil {
		return s, false
	}
	was.EntryID = entryID(raw) // computed, since anybody may have written the line
	was.Attempts = min(max(0, was.Attempts), maxEarlierAttempts)
	was.Took = min(max(0, was.Took), maxEarlierTook)
	id, text, _ := decodeLine(raw)
	return Scheduled{ID: id, EntryID: was.EntryID, NotBefore: at, Text: text, line: raw, putOff: was, lineID: lines.ID(l)}, true
}

// noteEarlier keeps the earlier deliveries of an entry that returns to the queue.
func (t *Tx) noteEarlier(was *earlier) {
	t.forgetEarlier(was.EntryID)
	t.st.PutOff = encodedLast(t, append(kept[[]earlier](t.st.PutOff), *was), maxEarlier)
}

// earlier returns what is kept of an entry. Most lines that are looked up were never put off, and cost no decoding.
func (t *Tx) earlier(entryID string) (of []earlier) {
	if bytes.Contains(t.st.PutOff, []byte(entryID)) {
		of = slices.DeleteFunc(kept[[]earlier](t.st.PutOff), func(e earlier) bool { return e.EntryID != entryID })
	}
	return of
}

// resume gives an entry from the queue its earlier deliveries.
func (t *Tx) resume(e *Entry) {
	for _, was := range t.earlier(e.EntryID) {
		was.resume(e)
	}
}

func (was *earlier) resume(e *Entry) {
	e.Attempt, e.firstSeq, e.spent, e.took = was.Attempts+1, was.FirstSeq, was.Spent, max(0, was.Took)
}

// forgetEarlier drops the earlier deliveries of an entry that is delivered or settled now.
func (t *Tx) forgetEarlier(entryID string) {
	if len(t.earlier(entryID)) > 0 {
		all := slices.DeleteFunc(kept[[]earlier](t.st.PutOff), func(e earlier) bool { return e.EntryID == entryID })
		t.st.PutOff = encodedLast(t, all, maxEarlier)
	}
}
