package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// place says where an entry is.
type place struct {
	where      string // a Receipt's Found
	entryID    string
	start, end int64      // in the queue file, both 0 where it is not there
	notBefore  *time.Time // of a scheduled entry

	// text is what the entry asks for. part says that it is the beginning, or stands for a
	// text in a file: the line that it is of is in the queue file yet, perhaps, at from.
	text     string
	part     bool
	from, to int64
	letter   string // names a dead letter
	ahead    bool   // it is sent together with what is compared with it
}

// stands says where the entry is, as a part of a sentence.
func (p place) stands() string {
	switch {
	case p.ahead:
		return "comes before it"
	case p.where == setAside:
		return "became a dead letter"
	case p.where == FoundAnswered:
		return "was answered"
	}
	return "is " + p.where
}

// asksElse reports whether the entry at a place is known to have another text.
func (t *Tx) asksElse(p place, text string) bool {
	if !p.part {
		return p.text != text
	}
	if t.file != nil && p.from >= 0 {
		if l, err := readLine(t.file, p.from, min(p.to, t.queueSize()), MaxLine); err == nil && !l.tooLong && entryID(l.raw) == p.entryID {
			_, whole, _ := decodeLine(l.raw)
			return whole != text
		}
	}
	return p.text != "" && !strings.HasPrefix(p.text, standsFor) && firstCharacters(text, keptPrompt) != p.text
}

// setAside is where a place is that is no [Receipt]'s: among the dead letters.
const setAside = "dead letter"

// find says where the entries with those envelope ids are, and leaves out those
// that are nowhere. It reads what waits in the queue and, while an id is missing,
// the results.
func (t *Tx) find(ids map[string]bool) (map[string]place, error) {
	found := map[string]place{}
	note := func(id string, p place) bool {
		if _, known := found[id]; ids[id] && !known {
			found[id] = p
		}
		return len(found) < len(ids)
	}
	t.findOut(note)
	err := t.findQueued(needleOf(ids), note)
	if err != nil || len(found) == len(ids) {
		return found, err
	}
	f, err := openResults(t.box)
	if f == nil || err != nil {
		return found, err
	}
	err = scanAnswered(f, 0, ids, note)
	return found, errors.Join(err, f.Close())
}

// needleOf is the id that is looked for if there is only one, else "".
func needleOf(ids map[string]bool) string {
	if len(ids) != 1 {
		return ""
	}
	for id := range ids {
		return id
	}
	return ""
}

// findOut finds entries that are in flight or were given back.
func (t *Tx) findOut(note func(string, place) bool) {
	for where, d := range map[string]*Delivery{FoundInFlight: t.inFlight, FoundQueued: t.redeliver} {
		if d != nil {
			note(d.ID(), place{
				where: where, entryID: d.EntryID, start: d.StartOffset, end: d.EndOffset,
				text: d.Text(), part: d.TextFile != "", from: d.StartOffset, to: d.EndOffset,
			})
		}
	}
}

// findQueued finds entries that are scheduled or wait in the queue.
func (t *Tx) findQueued(needle string, note func(string, place) bool) error {
	goOn, err := t.findScheduled(note)
	if err != nil || !goOn {
		return err
	}
	return t.scanQueue(t.st.Cursor, needle, func(id string, p place, _ bool) bool { return note(id, p) })
}

func (t *Tx) findScheduled(note func(string, place) bool) (goOn bool, err error) {
	goOn = true
	err = t.box.EachScheduled(func(s Scheduled) bool {
		at := s.NotBefore
		goOn = note(s.ID, place{where: FoundScheduled, entryID: s.EntryID, notBefore: &at, text: s.Text})
		return goOn
	})
	return goOn && err == nil, err
}

// scanQueue calls note for each entry of the queue file, from an offset on, that
// has an id; whole is false for a last line without its newline.
func (t *Tx) scanQueue(from int64, needle string, note func(id string, p place, whole bool) bool) error {
	if t.file == nil {
		return nil
	}
	from, err := t.file.SkipZeros(from, t.queueSize())
	if err != nil {
		return err
	}
	waits := io.NewSectionReader(t.file, from, t.queueSize()-from)
	return lines.Each(waits, from, func(off, end int64, l []byte, whole bool) bool {
		if !mayHold(l, needle) || !mayHold(l, `"id"`) || t.skips(off) {
			return true
		}
		id, text, _ := decodeLine(l)
		return id == "" || note(id, place{where: FoundQueued, entryID: entryID(l), start: off, end: end, text: text}, whole)
	})
}

// openResults opens .results.jsonl; nil means that there is none.
func openResults(b *Inbox) (*disk.File, error) { return openState(b.fileOf(journal.Results)) }

// scanAnswered calls note for the results with those ids, from an offset on. It
// decodes no more of other lines than their id.
func scanAnswered(f *disk.File, from int64, ids map[string]bool, note func(string, place) bool) error {
	needle := needleOf(ids)
	return lines.EachOwn(io.NewSectionReader(f, from, f.Info().Size-from), from, func(_, _ int64, l []byte, _ bool) bool {
		if !mayHold(l, needle) {
			return true
		}
		id := flat.Value(l).Get("id").Shown()
		if id == "" || !ids[id] || !json.Valid(l) {
			return true
		}
		r, _ := flat.Parse(l) // it is valid
		text := r.String("prompt")
		return note(id, place{
			where: FoundAnswered, entryID: r.String("entry_id"), from: r.Int("start_offset"), to: r.Int("end_offset"),
			text: text, part: text == "" || utf8.RuneCountInString(text) >= keptPrompt,
		})
	})
}

// scanSetAside keeps in found the dead letters with those ids, from an offset on, that were
// neither requeued nor taken back by who sent them.
func scanSetAside(f *disk.File, from int64, ids map[string]bool, found map[string]place) error {
	needle := needleOf(ids)
	return lines.EachRecord(io.NewSectionReader(f, from, f.Info().Size-from), from, func(_, _ int64, l []byte, _ bool) bool {
		if !mayHold(l, needle) || !ids[flat.Value(l).Get("id").Shown()] {
			return true
		}
		switch d, mark, ok := ParseLetter(l); {
		case !ok || mark && found[d.ID].letter != d.Letter:
		case mark:
			delete(found, d.ID)
		case d.Reason != ReasonCanceled:
			found[d.ID] = place{
				where: setAside, entryID: d.EntryID, letter: d.Letter, text: d.Text(), part: d.RawFile != "",
				from: d.StartOffset, to: d.EndOffset,
			}
		}
		return true
	})
}

// mayHold rules out, without decoding it, a line that cannot hold the JSON string
// needle: one with neither its plain form nor an escape.
func mayHold(l []byte, needle string) bool {
	return needle == "" || bytes.Contains(l, []byte(needle)) || bytes.IndexByte(l, '\\') >= 0
}
