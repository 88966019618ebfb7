package inbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

var (
	errNothingInFlight = errors.New("nothing is in flight")
	errNotOffered      = errors.New("the entry is not the one that this transaction's last Next returned: call Next, and deliver what it returns")
)

// Deliver puts the entry that [Tx.Next] returned last in this transaction in flight. Any other entry may have
// been settled since. Hand the entry over only after Commit returned nil.
func (t *Tx) Deliver(e Entry, to Recipient) (*Delivery, error) {
	if t.inFlight != nil {
		return nil, errors.New("deliver: an entry is still in flight: settle it first")
	}
	if e.offer == nil || e.offer != t.offered {
		return nil, fmt.Errorf("deliver: %w", errNotOffered)
	}
	if err := to.check(); err != nil {
		return nil, fmt.Errorf("deliver: %w", err)
	}
	t.offered, t.delivers = nil, true
	d := e.delivery()
	d.Inbox, d.DeliveredAt, d.DeliveredSeq = t.box.name, t.box.utcNow(), t.Seq()
	d.SessionID, d.PromptID, d.Evidence = to.SessionID, to.PromptID, to.Evidence
	if len(to.Checks) > 0 {
		d.Check = &Check{Name: strings.Join(to.Checks, ",")}
	}
	t.forgetEarlier(e.EntryID)
	t.In(to.SessionID).endLate()
	t.setRedeliver(nil)
	t.setInFlight(d)
	t.accountant.Enter(d)
	t.st.Handed = false
	t.count(func(n *Totals) { n.Delivered++ })
	return t.inFlight, nil
}

// Acknowledge settles the entry in flight as answered: it leaves a [Result], and the cursor moves past the entry.
func (t *Tx) Acknowledge(reply string) error { return t.AcknowledgeWith(reply, nil) }

// AcknowledgeWith is [Tx.Acknowledge] for an entry that left tasks running after its turns: a JSON array of [Task].
func (t *Tx) AcknowledgeWith(reply string, tasks json.RawMessage) error {
	d := t.inFlight
	if d == nil {
		return fmt.Errorf("acknowledge: %w", errNothingInFlight)
	}
	r := resultOf(d, reply, t.box.utcNow())
	r.BackgroundTasks, r.Cost = tasks, t.accountant.CostOf(d)
	if v := d.Verdict; v != nil && v.Kind == VerdictDone {
		r.Result, r.Said = v.Text, true
	}
	line, err := r.encode()
	if err != nil {
		return err
	}
	t.addJSON(journal.Results, line)
	t.count(func(n *Totals) { n.answered(r) })
	t.st.Session, t.st.Acknowledged = d.SessionID, t.In(d.SessionID).Acknowledged()+1
	t.forgetBackoff()
	t.forgetText(d)
	t.pass(d)
	return nil
}

// DeadLetter sets the entry in flight aside, and the cursor moves past it.
func (t *Tx) DeadLetter(reason Reason) error {
	d := t.inFlight
	if d == nil {
		return fmt.Errorf("dead-letter: %w", errNothingInFlight)
	}
	t.expectLate(d, t.deadLetter(t.deadLetterOf(d, reason)))
	t.pass(d)
	return t.failed
}

// DeadLetterFor is [Tx.DeadLetter] with the error that kept the entry from being answered.
func (t *Tx) DeadLetterFor(reason Reason, failure, message string) error {
	if t.inFlight == nil {
		return fmt.Errorf("dead-letter: %w", errNothingInFlight)
	}
	d := *t.inFlight
	d.Failure = t.failure(failure, message)
	t.setInFlight(&d)
	return t.DeadLetter(reason)
}

func (t *Tx) deadLetter(d DeadLetter) Letter {
	t.addJSON(journal.DeadLetters, t.encoded(d))
	t.person = true
	t.count(func(n *Totals) { n.deadLettered(d.Reason) })
	return Letter{Letter: LetterName(d), DeadLetter: d}
}

// Drop forgets the entry in flight, and the cursor moves past it.
func (t *Tx) Drop() error {
	if t.inFlight == nil {
		return fmt.Errorf("drop: %w", errNothingInFlight)
	}
	d := t.inFlight
	t.count(func(n *Totals) { n.Dropped++ })
	t.forgetText(d)
	e := eventOf(d, EventDropped)
	e.Cost = t.accountant.CostOf(d)
	t.pass(d)
	t.addEvent(e)
	return t.failed
}

// Bind records which turn the entry in flight belongs to, if that was unknown at its delivery.
func (t *Tx) Bind(to Recipient) error {
	if t.inFlight == nil {
		return fmt.Errorf("bind: %w", errNothingInFlight)
	}
	if err := to.check(); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	d := *t.inFlight
	same := d.PromptID != "" && d.PromptID == to.PromptID && d.SessionID == to.SessionID
	d.SessionID, d.PromptID, d.Evidence = to.SessionID, to.PromptID, to.Evidence
	t.setInFlight(&d)
	if !same { // else what the turn has cost so far is the entry's
		t.accountant.Rebind(&d)
	}
	return nil
}

// GiveBack returns the entry in flight to its place in the queue, where [Tx.Next] finds it again. counted is whether
// the delivery counts as an attempt: one that never arrived ([NeverArrived]) does not.
func (t *Tx) GiveBack(reason string, counted bool) error {
	if t.inFlight == nil {
		return fmt.Errorf("give back: %w", errNothingInFlight)
	}
	d := *t.inFlight
	d.FirstSeq, d.Verdict, d.Progress, d.Check = d.First(), nil, nil, nil
	cost := t.accountant.CostOf(&d)
	if reason == NeverArrived && !counted {
		t.accountant.NeverArrived(&d)
	} else {
		t.accountant.Leave(&d)
	}
	if counted {
		d.Took += t.worked
	} else {
		d.Attempt--
	}
	if !d.Detached && t.st.Cursor != d.StartOffset {
		t.moveCursor(d.StartOffset, d.StartOffset)
	}
	t.setRedeliver(&d)
	t.setInFlight(nil)
	t.count(func(n *Totals) { n.Redelivered++ })
	e := eventOf(&d, EventRedelivered)
	e.Reason, e.Uncounted, e.Cost = reason, !counted, cost
	t.addEvent(e)
	return t.failed
}

// Worked sets how long the delivery in flight was worked on, before the transaction gives it back and adds that time.
func (t *Tx) Worked(d time.Duration) { t.worked = max(0, d) }

func (t *Tx) setInFlight(d *Delivery) {
	t.inFlight, t.dirty = d, true
	t.st.InFlight = nil // encoded with the commit
}

func (t *Tx) setRedeliver(d *Delivery) {
	if d != nil && d.Detached && (t.redeliver == nil || !t.redeliver.Detached) {
		// No inbox has it any more: without a copy, losing the journal would lose the entry.
		e := eventOf(d, EventDetached)
		e.RawLine, e.RawBase64 = d.RawLine.Text, d.RawLine.Base64
		t.addEvent(e)
	}
	t.redeliver, t.dirty = d, true
	t.st.Redeliver = nil // encoded with the commit
}

func (t *Tx) moveCursor(lineStart, to int64) {
	t.st.Cursor, t.dirty = to, true
	t.lastLine, t.reanchor = lineStart, true
}

// pass settles the entry that is in flight, or else was given back.
func (t *Tx) pass(d *Delivery) {
	if d == t.inFlight {
		t.accountant.Leave(d)
		t.setInFlight(nil)
	} else {
		t.setRedeliver(nil)
	}
	if !d.Detached {
		t.moveCursor(d.StartOffset, d.EndOffset)
	}
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
func (t *Tx) addEvent(e Event) {
	if e.At.IsZero() {
		e.At = t.box.utcNow()
	}
	t.addJSON(journal.Events, t.encoded(e))
}

// encoded returns v as JSON, for the next commit. If that fails, no commit follows.
func (t *Tx) encoded(v any) []byte {
	line, err := flat.JSON(v)
	t.failed, t.dirty = cmp.Or(t.failed, err), true
	return line
}

// encodedLast encodes the last items of a list, no more than most of them. It returns nil for an empty list.
func encodedLast[T any](t *Tx, all []T, most int) []byte {
	if len(all) == 0 {
		t.dirty = true
		return nil
	}
	return t.encoded(all[max(0, len(all)-most):])
}

// forgetRecorded makes the next commit leave out a member of the record.
func (t *Tx) forgetRecorded(member *json.RawMessage) {
	if len(*member) > 0 {
		*member, t.dirty = nil, true
	}
}

// ResolveElsewhere settles an entry from [Tx.Next] that nobody needs to answer any more, and moves the cursor past it.
// why is what became of it.
func (t *Tx) ResolveElsewhere(e Entry, why string) error {
	switch {
	case t.inFlight != nil:
		return errors.New("resolve elsewhere: an entry is still in flight: settle it first")
	case e.EntryID == "":
		return errors.New("resolve elsewhere: the entry did not come from Next")
	}
	t.setRedeliver(nil)
	t.forgetEarlier(e.EntryID)
	if !e.detached {
		t.moveCursor(e.Start, e.End)
	}
	t.count(func(n *Totals) { n.Dropped++ })
	t.addEvent(Event{Event: EventElsewhere, EntryID: e.EntryID, ID: e.ID, Start: e.Start, Attempt: e.Attempt - 1, Reason: why})
	return t.failed
}

// passSettled moves the cursor past an entry that needs no turn, because its outcome is known.
func (t *Tx) passSettled(e Entry) (passed bool, err error) {
	why, err := t.settledBefore(e.Start)
	if why == "" || err != nil {
		return false, err
	}
	t.moveCursor(e.Start, e.End)
	t.notePassed(e, why)
	return true, nil
}

// notePassed counts an entry that needed no turn.
func (t *Tx) notePassed(e Entry, why string) {
	t.asideLines++
	r := t.rereading()
	r.Passed++
	t.setReread(r)
	t.addEvent(Event{Event: EventSettled, EntryID: e.EntryID, ID: e.ID, Start: e.Start, Attempt: e.Attempt - 1, Reason: why})
}
