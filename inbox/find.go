package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

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
}

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
			note(d.ID(), place{where: where, entryID: d.EntryID, start: d.StartOffset, end: d.EndOffset})
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
	all, err := t.box.Scheduled()
	if err != nil {
		return false, err
	}
	for _, s := range all {
		at := s.NotBefore
		if !note(s.ID, place{where: FoundScheduled, entryID: s.EntryID, notBefore: &at}) {
			return false, nil
		}
	}
	return true, nil
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
		if _, canceled := t.canceledAt(off); canceled || !mayHold(l, needle) || !mayHold(l, `"id"`) {
			return true
		}
		id, _, _ := decodeLine(l)
		return id == "" || note(id, place{where: FoundQueued, entryID: entryID(l), start: off, end: end}, whole)
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
		return note(id, place{where: FoundAnswered, entryID: flat.Value(l).Get("entry_id").Shown()})
	})
}

// mayHold rules out, without decoding it, a line that cannot hold the JSON string
// needle: one with neither its plain form nor an escape.
func mayHold(l []byte, needle string) bool {
	return needle == "" || bytes.Contains(l, []byte(needle)) || bytes.IndexByte(l, '\\') >= 0
}
