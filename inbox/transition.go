package inbox

import (
	"encoding/json"
	"errors"
	"fmt"

	"heartbeat/internal/flat"
)

var errNothingInFlight = errors.New("nothing is in flight")

// Deliver puts an entry from [Tx.Next] in flight. Hand it over only after
// Commit returned nil.
func (t *Tx) Deliver(e Entry, to Recipient) (*Delivery, error) {
	if t.inFlight != nil {
		return nil, errors.New("deliver: an entry is still in flight: settle it first")
	}
	if len(to.Evidence) > 0 && (!json.Valid(to.Evidence) || flat.TooDeep(to.Evidence)) {
		return nil, errors.New("deliver: the evidence is not JSON, or nested too deeply")
	}
	d := &Delivery{
		EntryID: e.EntryID, StartOffset: e.Start, EndOffset: e.End, RawLine: rawLineOf(e.raw),
		DeliveredAt: t.box.utcNow(), Attempt: e.Attempt,
		SessionID: to.SessionID, PromptID: to.PromptID, Evidence: to.Evidence,
		Inbox: t.box.name, Detached: e.detached, Unterminated: !e.terminated,
	}
	t.setRedeliver(nil)
	t.setInFlight(d)
	return d, nil
}

// Acknowledge settles the entry in flight as answered: a [Result] is kept, and
// the cursor moves past it.
func (t *Tx) Acknowledge(reply string) error {
	d := t.inFlight
	if d == nil {
		return fmt.Errorf("acknowledge: %w", errNothingInFlight)
	}
	line, err := resultOf(d, reply, t.box.utcNow()).encode()
	if err != nil {
		return err
	}
	t.append(resultsName, line)
	t.st.Session, t.st.Acknowledged = d.SessionID, t.Acknowledged(d.SessionID)+1
	t.pass(d)
	return nil
}

// DeadLetter sets the entry in flight aside, and the cursor moves past it.
func (t *Tx) DeadLetter(reason Reason) error {
	d := t.inFlight
	if d == nil {
		return fmt.Errorf("dead-letter: %w", errNothingInFlight)
	}
	line, err := encodeJSON(deadLetterOf(d, reason, t.box.utcNow()))
	if err != nil {
		return err
	}
	t.append(deadLetterName, line)
	t.pass(d)
	return nil
}

// Drop forgets the entry in flight, and the cursor moves past it.
func (t *Tx) Drop() error {
	if t.inFlight == nil {
		return fmt.Errorf("drop: %w", errNothingInFlight)
	}
	t.pass(t.inFlight)
	return nil
}

// GiveBack returns the entry in flight to the queue, at its place: [Tx.Next]
// gives it again. counted says whether the delivery counts as an attempt.
func (t *Tx) GiveBack(counted bool) error {
	if t.inFlight == nil {
		return fmt.Errorf("give back: %w", errNothingInFlight)
	}
	d := *t.inFlight
	if !counted {
		d.Attempt--
	}
	if !d.Detached && t.st.Cursor != d.StartOffset {
		t.moveCursor(d.StartOffset, d.StartOffset)
	}
	t.setRedeliver(&d)
	t.setInFlight(nil)
	return nil
}

func (t *Tx) pass(d *Delivery) {
	if !d.Detached {
		t.moveCursor(d.StartOffset, d.EndOffset)
	}
	t.setInFlight(nil)
}

func (t *Tx) moveCursor(lineStart, to int64) {
	t.st.Cursor, t.dirty = to, true
	t.anchor(lineStart)
}

func (t *Tx) setInFlight(d *Delivery) {
	t.inFlight, t.dirty = d, true
	t.st.InFlight = nil // encoded with the commit
}

func (t *Tx) setRedeliver(d *Delivery) {
	t.redeliver, t.dirty = d, true
	t.st.Redeliver = nil // encoded with the commit
}

// pendingAppend is a line that the next commit adds to a file.
type pendingAppend struct {
	file string
	line json.RawMessage
}

func (t *Tx) append(file string, line []byte) {
	t.pending, t.dirty = append(t.pending, pendingAppend{file, line}), true
}
