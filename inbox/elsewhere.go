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

// passSettled moves the cursor past an entry that needs no turn, since what became of
// it is known.
func (t *Tx) passSettled(e Entry) (passed bool, err error) {
	why, err := t.settledBefore(e.Start)
	if why == "" || err != nil {
		return false, err
	}
	t.moveCursor(e.Start, e.End)
	return true, t.notePassed(e, why)
}

// settleAgain settles an entry that is in flight, or was given back, in a state that is
// older than what became of it.
func (t *Tx) settleAgain(d *Delivery, why string) error {
	if d == t.inFlight {
		t.stale = d
		t.leave(d)
		t.pass(d)
	} else if t.setRedeliver(nil); !d.Detached {
		t.moveCursor(d.StartOffset, d.EndOffset)
	}
	return t.notePassed(d.entry(), why)
}

// notePassed counts an entry that needed no turn.
func (t *Tx) notePassed(e Entry, why string) error {
	t.asideLines++
	r := t.rereading()
	r.Passed++
	t.setReread(r)
	return t.addEvent(Event{Event: EventSettled, EntryID: e.EntryID, ID: e.ID, Start: e.Start, Attempt: e.Attempt - 1, Reason: why})
}
