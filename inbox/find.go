package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"time"

	"heartbeat/internal/disk"
)

// place says where an entry is.
type place struct {
	where      string // a Receipt's Found
	entryID    string
	start, end int64      // in the queue file, both 0 where it is not there
	notBefore  *time.Time // of a scheduled one
}

// find says where the entries of those envelope ids are; those that are nowhere
// are left out. It reads the results and what waits in the queue.
func (t *Tx) find(ids map[string]bool) (map[string]place, error) { return t.findSince(ids, looked{}) }

// looked says how far names were looked for, none of which was there. A batch
// that lets go of the lock now and then would read the whole queue each time.
type looked struct {
	generation    int // of the queue file
	cursor, queue int64
	before        string // what stands before queue, by which the file is known again
	results       point
}

// findNew is [Tx.find] for names that were all looked for the last time.
func (l *looked) findNew(t *Tx, ids map[string]bool) (found map[string]place, err error) {
	now := looked{generation: t.st.QueueGen, cursor: t.st.Cursor}
	if now.results, err = pointAtEnd(t.box.file(resultsName)); err != nil {
		return nil, err
	}
	if t.file != nil {
		if now.queue, err = lineStart(t.file, t.size()); err != nil {
			return nil, err
		}
		if now.before, err = t.bytesBefore(now.queue); err != nil {
			return nil, err
		}
	}
	if found, err = t.findSince(ids, *l); err == nil && len(found) > 0 {
		now = looked{} // where those are may change
	}
	*l = now
	return found, err
}

// from is where looking for names in the queue file goes on.
func (l looked) from(t *Tx) (int64, error) {
	if l.queue == 0 || l.queue > t.size() || l.generation != t.st.QueueGen || l.cursor > t.st.Cursor {
		return t.st.Cursor, nil
	}
	before, err := t.bytesBefore(l.queue)
	if err != nil || before != l.before {
		return t.st.Cursor, err
	}
	return max(t.st.Cursor, l.queue), nil
}

// bytesBefore are some of the queue file, enough to tell one line from another.
func (t *Tx) bytesBefore(off int64) (string, error) {
	b := make([]byte, min(off, anchorSpan))
	n, err := t.file.ReadAt(b, off-int64(len(b)))
	if err == io.EOF {
		err = nil // it was truncated just now: that is what this is to notice
	}
	return string(b[:n]), err
}

func (t *Tx) findSince(ids map[string]bool, since looked) (map[string]place, error) {
	found := map[string]place{}
	note := func(id string, p place) bool {
		if _, known := found[id]; ids[id] && !known {
			found[id] = p
		}
		return len(found) < len(ids)
	}
	for where, d := range map[string]*Delivery{FoundInFlight: t.inFlight, FoundQueued: t.redeliver} {
		if d != nil {
			note(d.ID(), place{where: where, entryID: d.EntryID, start: d.StartOffset, end: d.EndOffset})
		}
	}
	needle := ""
	if len(ids) == 1 {
		for needle = range ids {
			break
		}
	}
	if len(found) < len(ids) {
		if err := t.findQueued(needle, since, note); err != nil {
			return nil, err
		}
	}
	if len(found) < len(ids) {
		if err := t.box.findAnswered(needle, since.results, note); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (t *Tx) findQueued(needle string, since looked, note func(string, place) bool) error {
	all, err := t.box.Scheduled()
	if err != nil {
		return err
	}
	for _, s := range all {
		at := s.NotBefore
		if !note(s.ID, place{where: FoundScheduled, entryID: s.EntryID, notBefore: &at}) {
			return nil
		}
	}
	if t.file == nil {
		return nil
	}
	from, err := since.from(t)
	if err == nil {
		from, err = t.file.SkipHole(from, t.size())
	}
	if err != nil {
		return err
	}
	waits := io.NewSectionReader(t.file, from, t.size()-from)
	return eachLine(waits, from, func(off, end int64, l []byte, _ bool) bool {
		if !mayHold(l, needle) {
			return true
		}
		id, _, _ := decodeLine(l)
		return id == "" || note(id, place{where: FoundQueued, entryID: entryID(l), start: off, end: end})
	})
}

func (b *Inbox) findAnswered(needle string, since point, note func(string, place) bool) (err error) {
	f, err := disk.OpenRead(b.file(resultsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	from := int64(0)
	if since.file == f.Identity() && since.off <= f.Info().Size {
		from = since.off
	}
	return eachLine(io.NewSectionReader(f, from, f.Info().Size-from), from, func(_, _ int64, l []byte, _ bool) bool {
		if !mayHold(l, needle) {
			return true
		}
		var r struct {
			ID      string `json:"id"`
			EntryID string `json:"entry_id"`
		}
		return json.Unmarshal(l, &r) != nil || r.ID == "" || note(r.ID, place{where: FoundAnswered, entryID: r.EntryID})
	})
}

// mayHold leaves out, without decoding it, a line that cannot hold the JSON
// string needle: one that has neither its plain form nor an escape.
func mayHold(l []byte, needle string) bool {
	return needle == "" || bytes.Contains(l, []byte(needle)) || bytes.IndexByte(l, '\\') >= 0
}
