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
	"heartbeat/internal/money/price"
)

// VerdictKind is what an agent says of its entry.
type VerdictKind string

// The verdicts.
const (
	VerdictDone     VerdictKind = "done"     // it is done: the text is the result
	VerdictFailed   VerdictKind = "failed"   // it is to be tried again: the text says why
	VerdictRejected VerdictKind = "rejected" // it is never to be tried again: the text says why
)

const (
	// MaxResult is the longest result, in bytes: it is part of each record until the entry
	// is settled.
	MaxResult = 256 << 10
	// MaxReason is the longest reason, and the longest note of progress, in bytes.
	MaxReason = 4 << 10
	// MaxPutOff is how long an entry may be put off, and a note of progress holds.
	MaxPutOff = 7 * 24 * time.Hour
)

// Verdict is what an agent said itself of the entry that it works on. It is committed when it
// is said, and carried out by whoever settles the delivery: see package recover.
type Verdict struct {
	Kind VerdictKind `json:"verdict"`
	Text string      `json:"text,omitempty"`
	At   time.Time   `json:"at"`
	// Until is before when a failed entry is not to be delivered again, nil for at once.
	Until *time.Time `json:"until,omitempty"`
}

// Check says what is wrong with a verdict, as a sentence for who said it.
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

// Say keeps a verdict with the entry in flight, in place of one that was said before.
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
		e.Reason += ": " + firstCharacters(v.Text, keptPrompt)
	}
	return t.addEvent(e)
}

// Progress is what an agent said of how far it is.
type Progress struct {
	Text string    `json:"text,omitempty"`
	At   time.Time `json:"at"`
	// Until is up to when it is not to be taken for one that stands still.
	Until time.Time `json:"until"`
}

// NoteProgress keeps with the entry in flight that it is being worked on, for that long.
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
	e.Reason, e.Until = firstCharacters(text, keptPrompt), &d.Progress.Until
	return t.addEvent(e)
}

// earlier is what is known of the deliveries of an entry that was put off, from when it is
// back in the queue until it is delivered.
type earlier struct {
	EntryID  string        `json:"entry_id"`
	Attempts int           `json:"attempts"`
	FirstSeq int64         `json:"first_seq,omitempty"`
	Spent    string        `json:"spent,omitempty"`
	Took     time.Duration `json:"took_ns,omitempty"`
}

// maxEarlier bounds a list that is part of each record. Whoever falls out of it begins to
// count its attempts again.
const maxEarlier = 64

// Whoever changes .scheduled.jsonl has no sum run over.
const (
	maxEarlierAttempts = 1 << 30
	maxEarlierTook     = 100 * 365 * 24 * time.Hour
)

// PutOff gives the entry in flight back, to be delivered again from a time on: it goes to
// .scheduled.jsonl and from there to the end of the queue, and others go on meanwhile. The
// delivery counts as an attempt. An entry whose text is in a file of its own keeps its
// place, and is delivered again at once.
func (t *Tx) PutOff(reason string, until time.Time) error {
	d := t.inFlight
	if d == nil {
		return fmt.Errorf("put off: %w", errNothingInFlight)
	}
	if !until.After(t.box.utcNow()) || d.TextFile != "" {
		return t.GiveBackFor(reason, true)
	}
	was := earlier{
		EntryID: d.EntryID, Attempts: d.Attempt, FirstSeq: d.first(),
		Spent: d.Spent.Short(), Took: d.Took + t.worked,
	}
	line, err := d.putOffLine(was, until)
	if err != nil {
		return err
	}
	e := eventOf(d, EventRedelivered)
	e.Reason, e.Until, e.Fields = reason, &until, t.costOf(d)
	t.addJSON(journal.Scheduled, line)
	t.st.Scheduled = nil // to be read again
	t.count(func(n *Totals) { n.Redelivered++ })
	t.leave(d)
	t.pass(d)
	return t.addEvent(e)
}

// putOffLine is a line of .scheduled.jsonl: the entry's own line, byte for byte, and when it
// goes back.
func (d *Delivery) putOffLine(was earlier, until time.Time) ([]byte, error) {
	raw, err := flat.JSON(was)
	if err != nil {
		return nil, err
	}
	var o flat.Object
	o.Text(idMember, d.ID())
	o.Time(notBeforeMember, until)
	o.String("raw_line", d.RawLine.Text)
	o.Text("raw_base64", d.RawLine.Base64)
	o.Raw(putOffMember, raw)
	return slices.Clone(o.End()), nil
}

const putOffMember = "put_off"

// parsePutOff reads such a line. ok is false for any other.
func parsePutOff(l []byte, m *flat.Members) (s Scheduled, ok bool) {
	if !m.Has(putOffMember) || m.Has(promptMember) {
		return s, false // one with a prompt was sent, and has such metadata
	}
	line := RawLine{Text: m.String("raw_line"), Base64: m.String("raw_base64")}
	raw, err := line.Bytes()
	at := m.Time(notBeforeMember)
	was := new(earlier)
	if err != nil || m.Err() != nil || at.IsZero() || blank(raw) || bytes.ContainsRune(raw, '\n') || len(raw) > MaxLine || json.Unmarshal(m.Raw(putOffMember), was) != nil {
		return s, false
	}
	was.EntryID = entryID(raw) // whoever wrote it
	was.Attempts = min(max(0, was.Attempts), maxEarlierAttempts)
	was.Took = min(max(0, was.Took), maxEarlierTook)
	id, text, _ := decodeLine(raw)
	return Scheduled{ID: id, EntryID: was.EntryID, NotBefore: at, Text: text, line: raw, putOff: was, lineID: lines.ID(l)}, true
}

// noteEarlier keeps what is known of an entry that goes back to the queue.
func (t *Tx) noteEarlier(was *earlier) error {
	all := slices.DeleteFunc(t.earlier(), func(e earlier) bool { return e.EntryID == was.EntryID })
	all = append(all, *was)
	return t.setEarlier(all[max(0, len(all)-maxEarlier):])
}

func (t *Tx) earlier() (all []earlier) {
	if len(t.st.PutOff) > 0 {
		_ = json.Unmarshal(t.st.PutOff, &all) // the record's sum was right
	}
	return all
}

func (t *Tx) setEarlier(all []earlier) (err error) {
	t.dirty = true
	if t.st.PutOff = nil; len(all) > 0 {
		t.st.PutOff, err = flat.JSON(all)
	}
	return err
}

// resume gives an entry from the queue what is known of its earlier deliveries.
func (t *Tx) resume(e *Entry) {
	if len(t.st.PutOff) == 0 {
		return
	}
	for _, was := range t.earlier() {
		if was.EntryID != e.EntryID {
			continue
		}
		e.Attempt, e.firstSeq, e.took = was.Attempts+1, was.FirstSeq, max(0, was.Took)
		e.spent, _ = price.Short(was.Spent) // nothing, where somebody edited it
	}
}

// forgetEarlier forgets what was known of an entry that is delivered.
func (t *Tx) forgetEarlier(entryID string) error {
	if len(t.st.PutOff) == 0 {
		return nil
	}
	return t.setEarlier(slices.DeleteFunc(t.earlier(), func(e earlier) bool { return e.EntryID == entryID }))
}
