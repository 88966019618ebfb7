package inbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// earlier is what is known of the deliveries of an entry that was put off, from when it is
// back in the queue until it is delivered.
type earlier struct {
	EntryID      string        `json:"entry_id"`
	Attempts     int           `json:"attempts"`
	FirstSeq     int64         `json:"first_seq,omitempty"`
	Spent        string        `json:"spent,omitempty"`
	SpentDivided bool          `json:"spent_divided,omitempty"`
	Took         time.Duration `json:"took_ns,omitempty"`
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
		Spent: amountText(d.Spent), SpentDivided: d.SpentDivided, Took: d.Took + t.worked,
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
		e.Attempt, e.firstSeq, e.spentDivided, e.took = was.Attempts+1, was.FirstSeq, was.SpentDivided, max(0, was.Took)
		e.spent, _ = amountOf(was.Spent) // nothing, where somebody edited it
	}
}

// forgetEarlier forgets what was known of an entry that is delivered.
func (t *Tx) forgetEarlier(entryID string) error {
	if len(t.st.PutOff) == 0 {
		return nil
	}
	return t.setEarlier(slices.DeleteFunc(t.earlier(), func(e earlier) bool { return e.EntryID == entryID }))
}
