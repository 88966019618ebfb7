package inbox

import (
	"encoding/json"
	"errors"
	"fmt"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

var (
	errNothingInFlight = errors.New("nothing is in flight")
	errNotOffered      = errors.New("the entry is not the one that this transaction's last Next returned: call Next, and deliver what it returns")
)

// Deliver puts in flight the entry that [Tx.Next] returned last in this
// transaction; any other may have been settled since. Hand it over only after
// Commit returned nil.
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
	t.offered = nil
	d := &Delivery{
		EntryID: e.EntryID, StartOffset: e.Start, EndOffset: e.End, RawLine: rawLineOf(e.raw),
		DeliveredAt: t.box.utcNow(), DeliveredSeq: t.Seq(), Attempt: e.Attempt,
		SessionID: to.SessionID, PromptID: to.PromptID, Evidence: to.Evidence,
		Inbox: t.box.name, Detached: e.detached, Unterminated: !e.terminated, TextFile: e.textFile,
		FirstSeq: e.firstSeq, Spent: e.spent, SpentDivided: e.spentDivided, Took: e.took,
	}
	if err := t.forgetEarlier(e.EntryID); err != nil {
		return nil, fmt.Errorf("deliver: %w", err)
	}
	t.endLate(to.SessionID)
	t.setRedeliver(nil)
	t.setInFlight(d)
	t.enter(d)
	t.st.Handed = false
	t.count(func(n *Totals) { n.Delivered++ })
	return d, nil
}

// Acknowledge settles the entry in flight as answered: it leaves a [Result], and
// the cursor moves past it.
func (t *Tx) Acknowledge(reply string) error { return t.AcknowledgeWith(reply, nil) }

// AcknowledgeWith is [Tx.Acknowledge] for an entry that left tasks running
// besides its turns: a JSON array of [Task].
func (t *Tx) AcknowledgeWith(reply string, tasks json.RawMessage) error {
	d := t.inFlight
	if d == nil {
		return fmt.Errorf("acknowledge: %w", errNothingInFlight)
	}
	r := resultOf(d, reply, t.box.utcNow())
	r.BackgroundTasks, r.Fields = tasks, t.costOf(d)
	if v := d.Verdict; v != nil && v.Kind == VerdictDone {
		r.Result, r.Said = v.Text, true
	}
	line, err := r.encode()
	if err != nil {
		return err
	}
	t.addJSON(journal.Results, line)
	t.count(func(n *Totals) { n.answered(r) })
	t.st.Session, t.st.Acknowledged = d.SessionID, t.Acknowledged(d.SessionID)+1
	t.forgetBackoff()
	t.forgetText(d)
	t.leave(d)
	t.pass(d)
	return nil
}

// DeadLetter sets the entry in flight aside, and the cursor moves past it.
func (t *Tx) DeadLetter(reason Reason) error {
	d := t.inFlight
	if d == nil {
		return fmt.Errorf("dead-letter: %w", errNothingInFlight)
	}
	dead := deadLetterOf(d, reason, t.box.utcNow())
	dead.Fields = t.costOf(d)
	if err := t.deadLetter(dead); err != nil {
		return err
	}
	t.expectLate(d, dead)
	t.leave(d)
	t.pass(d)
	return nil
}

// DeadLetterFor is [Tx.DeadLetter] with what kept the entry from being answered.
func (t *Tx) DeadLetterFor(reason Reason, failure, message string) error {
	if t.inFlight == nil {
		return fmt.Errorf("dead-letter: %w", errNothingInFlight)
	}
	d := *t.inFlight
	d.Failure = &Failure{Error: failure, Message: message, At: t.box.utcNow()}
	t.setInFlight(&d)
	return t.DeadLetter(reason)
}

func (t *Tx) deadLetter(d DeadLetter) error {
	line, err := flat.JSON(d)
	if err != nil {
		return err
	}
	t.addJSON(journal.DeadLetters, line)
	t.person = true
	t.count(func(n *Totals) { n.deadLettered(d.Reason) })
	return nil
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
	e.Fields = t.costOf(d)
	t.leave(d)
	t.pass(d)
	return t.addEvent(e)
}

// Bind records which turn the entry in flight belongs to, if that was unknown
// when it was delivered.
func (t *Tx) Bind(to Recipient) error {
	if t.inFlight == nil {
		return fmt.Errorf("bind: %w", errNothingInFlight)
	}
	if err := to.check(); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	d := *t.inFlight
	d.SessionID, d.PromptID, d.Evidence = to.SessionID, to.PromptID, to.Evidence
	t.setInFlight(&d)
	t.rebind(&d)
	return nil
}

// GiveBack returns the entry in flight to its place in the queue; [Tx.Next] then
// gives it again. counted says whether the delivery counts as an attempt: one
// that never arrived does not.
func (t *Tx) GiveBack(counted bool) error {
	if counted {
		return t.GiveBackFor("", true)
	}
	return t.GiveBackFor(NeverArrived, false)
}

// GiveBackFor is [Tx.GiveBack] for a given reason.
func (t *Tx) GiveBackFor(reason string, counted bool) error {
	if t.inFlight == nil {
		return fmt.Errorf("give back: %w", errNothingInFlight)
	}
	d := *t.inFlight
	d.FirstSeq, d.Verdict, d.Progress = d.first(), nil, nil
	fields := t.costOf(&d)
	if reason == NeverArrived && !counted {
		t.neverArrived(&d)
	} else {
		t.leave(&d)
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
	e.Reason, e.Uncounted, e.Fields = reason, !counted, fields
	return t.addEvent(e)
}
