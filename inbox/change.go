package inbox

import (
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

func (t *Tx) setInFlight(d *Delivery) {
	t.inFlight, t.dirty = d, true
	t.st.InFlight = nil // encoded with the commit
}

func (t *Tx) setRedeliver(d *Delivery) {
	if d != nil && d.Detached && (t.redeliver == nil || !t.redeliver.Detached) {
		t.noteDetached(d)
	}
	t.redeliver, t.dirty = d, true
	t.st.Redeliver = nil // encoded with the commit
}

func (t *Tx) moveCursor(lineStart, to int64) {
	t.st.Cursor, t.dirty = to, true
	t.lastLine, t.reanchor = lineStart, true
}

func (t *Tx) pass(d *Delivery) {
	if !d.Detached {
		t.moveCursor(d.StartOffset, d.EndOffset)
	}
	t.setInFlight(nil)
}

// addJSON makes the next commit add a line of JSON to a file.
func (t *Tx) addJSON(k journal.Kind, line []byte) { t.addLine(journal.Line{Kind: k, JSON: line}) }

func (t *Tx) addLine(l journal.Line) {
	t.pending, t.dirty = append(t.pending, l), true
	if l.Kind == journal.Results {
		t.looked = nil
	}
}

// addEvent makes the next commit add an event, as of now.
func (t *Tx) addEvent(e Event) error {
	e.At = t.box.utcNow()
	line, err := flat.JSON(e)
	if err != nil {
		return err
	}
	t.addJSON(journal.Events, line)
	return nil
}

// noteDetached keeps a copy of an entry that was given back and is in no inbox
// any more. Otherwise only the journal would have it, and losing the journal
// would lose the entry.
func (t *Tx) noteDetached(d *Delivery) {
	e := eventOf(d, EventDetached)
	e.RawLine, e.RawBase64 = d.RawLine.Text, d.RawLine.Base64
	if err := t.addEvent(e); err != nil {
		t.warn("the entry %s, which was given back, is in the journal alone: %v", d.label(), err)
	}
}
