package inbox

import (
	"errors"
	"io"
	"strings"
)

// Next is the entry to deliver: one that was given back, or else the first line
// at the cursor that is not blank. It matches [ErrEmpty] when none waits.
//
// A last line without its newline gives [ErrTorn], since somebody may still be
// writing it, unless still is a mark that [Inbox.AwaitStill] returned and the
// file is as it was then.
//
// What can never be delivered (too long, or nothing in it) becomes a dead
// letter on the way, with this transaction's commit.
func (t *Tx) Next(still Mark) (Entry, error) {
	if t.inFlight != nil {
		return Entry{}, errors.New("next entry: one is still in flight: settle it first")
	}
	if t.redeliver != nil {
		return t.redeliver.entry(), nil
	}
	if t.file == nil {
		return Entry{}, ErrEmpty
	}
	for off := t.st.Cursor; ; {
		l, err := readLine(t.file, off, t.size(), MaxLine)
		if err == io.EOF {
			return Entry{}, ErrEmpty
		}
		if err != nil {
			return Entry{}, err
		}
		off = l.end
		switch {
		case l.blank():
			continue
		case !l.terminated && still != t.mark():
			return Entry{}, ErrTorn
		case l.tooLong:
			if err := t.setAsideTooLong(l); err != nil {
				return Entry{}, err
			}
			continue
		}
		e := decodeEntry(l.raw)
		e.Start, e.End, e.terminated = l.start, l.end, l.terminated
		if strings.TrimSpace(e.Text) == "" {
			if err := t.setAsideUnread(e, ReasonEmpty, ""); err != nil {
				return Entry{}, err
			}
			continue
		}
		return e, nil
	}
}

// setAsideTooLong keeps the line's bytes in a file of their own, which is
// durable before the dead letter that names it is committed.
func (t *Tx) setAsideTooLong(l line) error {
	e := Entry{EntryID: l.id, Start: l.start, End: l.end}
	name, err := t.box.spill(t.file, l)
	if err != nil {
		return err
	}
	return t.setAsideUnread(e, ReasonTooLong, name)
}

func (t *Tx) setAsideUnread(e Entry, reason Reason, rawFile string) error {
	t.warn("entry [%d,%d) is a dead letter, %s", e.Start, e.End, reason)
	line, err := encodeJSON(DeadLetter{
		EntryID: e.EntryID, ID: e.ID, Metadata: e.Metadata, RawLine: rawLineOf(e.raw), RawFile: rawFile,
		StartOffset: e.Start, EndOffset: e.End, Reason: reason, DeadLetteredAt: t.box.utcNow(),
	})
	if err != nil {
		return err
	}
	t.append(deadLetterName, line)
	t.moveCursor(e.Start, e.End)
	return nil
}
