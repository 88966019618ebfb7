package inbox

import (
	"bytes"
	"fmt"
	"strconv"

	"heartbeat/internal/journal"
	"heartbeat/internal/price"
)

// takeOver takes over what another program did to the documented files since they
// last followed the journal: a launcher that resets the cursor, say, or
// heartbeat-rs. A file with invalid content is an error, and stays as it is.
func (t *Tx) takeOver() error {
	cursor, err := t.readCursor()
	if err != nil {
		return err
	}
	if t.responded, err = t.store.Responded(); err != nil {
		return err
	}
	if err := t.takeOverInFlight(cursor); err != nil {
		return err
	}
	if cursor != t.st.Cursor {
		if err := t.setForeignCursor(cursor); err != nil {
			return err
		}
	}
	t.clearStale()
	if t.responded && t.inFlight == nil {
		t.dirty = true // the next commit removes it
	}
	return nil
}

// setForeignCursor continues where another program put the cursor. When an entry
// in flight further on is settled, it would move the cursor past lines that now
// wait, so it is detached. An entry to be redelivered comes when the cursor
// reaches it; if it never does, the entry is detached too.
func (t *Tx) setForeignCursor(cursor int64) error {
	if was := t.st.Cursor; t.st.Seq > 0 && cursor < was {
		why := fmt.Sprintf("%s was set back from %d to %d: what lies between is delivered again, as whoever did it asked", t.store.Cursor().Path(), was, cursor)
		if err := t.noteByHand(Event{Event: EventSetBack, Start: cursor}, why); err != nil {
			return err
		}
	}
	t.st.Cursor, t.st.AnchorStart, t.st.AnchorSum, t.dirty = cursor, 0, "", true
	t.forgetDigest()
	if d := t.inFlight; d != nil && t.st.Seq > 0 && cursor < d.StartOffset {
		t.detach(d, t.redeliver)
	}
	r := t.redeliver
	if r == nil || r.Detached || r.StartOffset == cursor {
		return nil
	}
	comes, err := t.holds(r)
	if err != nil {
		return err
	}
	if comes && cursor < r.StartOffset {
		t.setRedeliver(nil)
		return nil
	}
	t.detach(r)
	return nil
}

// The longest, in bytes, that .inbox-offset and .in-flight may be, which others write, too. Texts
// of over 2 MiB are in files of their own.
const (
	MaxOffsetFile   = 4 << 10
	MaxInFlightFile = 32 << 20
)

func (t *Tx) takeOverInFlight(cursor int64) error {
	path := t.store.InFlight().Path()
	found, err := t.store.InFlight().Content(MaxInFlightFile)
	if err != nil {
		return err
	}
	if found == nil {
		return t.inFlightRemoved(cursor)
	}
	if t.inFlight == nil || !bytes.Equal(bytes.TrimRight(found, " \n"), t.st.InFlight) {
		d, err := parseDelivery(found)
		if err != nil {
			return fmt.Errorf("read %s: %w: nothing was changed: mend it, or move it away to have the entry delivered again", path, err)
		}
		if d.Inbox != "" && d.Inbox != t.box.name {
			return fmt.Errorf("read %s: it is an entry of the inbox %s, not of %s: give each inbox a directory of its own: %w", path, d.Inbox, t.box.name, ErrOtherInbox)
		}
		// A file that somebody else wrote does not prove that the inbox was
		// replaced.
		if fits, err := t.holds(d); err != nil {
			return err
		} else if !fits {
			t.warn("%s names the entry %s at [%d,%d), which the inbox does not have there: it is kept apart from the file", path, d.label(), d.StartOffset, d.EndOffset)
			d.Detached = true
		}
		t.named = d.first()
		// Whether the text went out is known for that delivery, whatever else was
		// edited.
		was := t.inFlight
		t.st.Handed = t.st.Handed && was != nil && was.EntryID == d.EntryID && bytes.Equal(was.Evidence, d.Evidence)
		if d.DeliveredSeq >= t.Seq() {
			d.DeliveredSeq = 0 // it counts in a journal that is gone
		}
		// Nor does such a file say what was spent, or what the agent said.
		d.FirstSeq, d.Spent, d.SpentDivided = 0, price.Amount{}, false
		d.Verdict, d.Progress = nil, nil
		if was != nil && was.EntryID == d.EntryID && was.DeliveredSeq == d.DeliveredSeq {
			d.FirstSeq, d.Spent, d.SpentDivided = was.FirstSeq, was.Spent, was.SpentDivided
			d.Verdict, d.Progress = was.Verdict, was.Progress
		}
		t.setInFlight(d)
	}
	return nil
}

// inFlightRemoved is for an entry in flight whose file somebody removed. A program that
// settles it moves the cursor on, and one that gives it back (heartbeat-rs's recover)
// removes the flag too. The file alone says nothing of what became of the entry: it
// stays in flight, since somebody may be at work on it.
func (t *Tx) inFlightRemoved(cursor int64) error {
	d := t.inFlight
	switch {
	case d == nil:
		return nil
	case !d.Detached && cursor >= d.EndOffset:
		t.setInFlight(nil)
		return nil
	case !t.responded:
		return t.GiveBackFor("its "+journal.InFlightName+" and "+journal.RespondedName+" were removed", true)
	}
	why := fmt.Sprintf("%s was removed, and written again: the entry %s stays in flight until its session or `heartbeat recover` settles it", t.store.InFlight().Path(), d.label())
	t.warn("%s", why)
	t.noticed, t.dirty, t.justFound = true, true, true
	return t.noteByHand(eventOf(d, EventRemoved), why)
}

// clearStale recognises an entry in flight that the cursor has already passed.
func (t *Tx) clearStale() {
	if d := t.inFlight; d != nil && !d.Detached && t.st.Cursor >= d.EndOffset && d.EndOffset > d.StartOffset {
		t.stale = d
		t.setInFlight(nil)
	}
}

// readCursor reads .inbox-offset; a missing file means 0.
func (t *Tx) readCursor() (int64, error) {
	path := t.store.Cursor().Path()
	text, err := t.store.Cursor().Content(MaxOffsetFile)
	if err != nil || text == nil {
		return 0, err
	}
	cursor, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("read %s: %q is no byte offset: nothing was changed: put the offset to read from into it, or remove it to read from the start: %w",
			path, abbreviate(text), ErrCorrupt)
	}
	return int64(cursor), nil
}

func abbreviate(b []byte) string {
	if len(b) > 40 {
		return string(b[:40]) + "..."
	}
	return string(b)
}
