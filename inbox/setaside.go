package inbox

import "heartbeat/internal/words"

// One transaction sets aside no more entries than asideLines, and no more of
// their bytes than about asideBytes.
const (
	asideLines = 1000
	asideBytes = 1 << 20
)

// SetAside is what [Tx.Next] set aside, one element for each reason.
func (t *Tx) SetAside() []SetAside { return t.aside }

func (t *Tx) noteAside(reason Reason, e Entry) {
	t.aside = AddSetAside(t.aside, SetAside{Reason: reason, Count: 1, Entry: words.Name(e.ID, e.EntryID), Start: e.Start, End: e.End})
	t.asideLines++
}

// setAsideExpired sets aside an entry that was given back and has expired since.
func (t *Tx) setAsideExpired(d *Delivery) error {
	return t.setAsideGivenBack(d, deadLetterOf(d, ReasonExpired, t.box.utcNow()))
}

// setAsideGivenBack makes a dead letter of an entry that was given back.
func (t *Tx) setAsideGivenBack(d *Delivery, dead DeadLetter) error {
	if err := t.deadLetter(dead); err != nil {
		return err
	}
	t.noteAside(dead.Reason, d.entry())
	t.setRedeliver(nil)
	if !d.Detached {
		t.moveCursor(d.StartOffset, d.EndOffset)
	}
	return nil
}

// setAsideWhole keeps the line's bytes in a file of their own, which is durable
// before the dead letter that names it is committed.
func (t *Tx) setAsideWhole(l line, reason Reason) error {
	if l.id == "" {
		l.id = entryID(l.raw)
	}
	e := Entry{EntryID: l.id, Start: l.start, End: l.end}
	name, err := t.box.spill(t.file, l)
	if err != nil {
		return err
	}
	return t.setAsideUnread(e, reason, name, nil)
}

func (t *Tx) setAsideUnread(e Entry, reason Reason, rawFile string, failure *Failure) error {
	t.noteAside(reason, e)
	t.asideBytes += len(e.raw)
	err := t.deadLetter(DeadLetter{
		EntryID: e.EntryID, ID: e.ID, Metadata: e.Metadata, RawLine: rawLineOf(e.raw), RawFile: rawFile,
		StartOffset: e.Start, EndOffset: e.End, Reason: reason, Failure: failure, DeadLetteredAt: t.box.utcNow(),
	})
	if err != nil {
		return err
	}
	t.moveCursor(e.Start, e.End)
	return nil
}
