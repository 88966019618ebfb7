package inbox

import "errors"

// ResolveElsewhere settles an entry from [Tx.Next] that nobody needs to answer
// any more, and moves the cursor past it. why says what became of it.
func (t *Tx) ResolveElsewhere(e Entry, why string) error {
	switch {
	case t.inFlight != nil:
		return errors.New("resolve elsewhere: an entry is still in flight: settle it first")
	case e.EntryID == "":
		return errors.New("resolve elsewhere: the entry is none from Next")
	}
	t.setRedeliver(nil)
	if !e.detached {
		t.moveCursor(e.Start, e.End)
	}
	t.count(func(n *Totals) { n.Dropped++ })
	return t.addEvent(Event{Event: EventElsewhere, EntryID: e.EntryID, ID: e.ID, Start: e.Start, Attempt: e.Attempt - 1, Reason: why})
}
