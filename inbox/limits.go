package inbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heartbeat/internal/money/price"
)

// Limits returns the cost limits of the entry's envelope: see [Entry.Limits].
func (d *Delivery) Limits() json.RawMessage {
	if !d.mayBeEnvelope() {
		return nil
	}
	return d.entry().Limits()
}

// maxRaised is how many undelivered entries may have limits that a person set. Beyond it the oldest lose
// their exception: they are set aside, and can be given limits again.
const maxRaised = 64

// noteRaised notes that a person set the limits of this entry.
func (m *Money) noteRaised(entryID string) {
	a := m.changeAccount()
	a.Raised = append(slices.DeleteFunc(a.Raised, func(id string) bool { return id == entryID }), entryID)
	a.Raised = a.Raised[max(0, len(a.Raised)-maxRaised):]
}

// IsRaised reports whether a person set the limits of this entry and it was not delivered since.
func (m *Money) IsRaised(entryID string) bool {
	return slices.Contains(m.readAccount().Raised, entryID)
}

// Entry returns what was delivered, decoded.
func (d *Delivery) Entry() Entry { return d.entry() }

// Spent returns what the entry's earlier deliveries cost, as far as known, and how long they were worked on.
func (e Entry) Spent() (cost price.Amount, took time.Duration) { return e.spent, e.took }

// Worked sets how long the delivery in flight was worked on, before the transaction gives it back and adds
// that time.
func (t *Tx) Worked(d time.Duration) { t.worked = max(0, d) }

// AcceptUnpriced makes a person's resume count today's use of models without a price as free. Otherwise a
// daily limit in dollars would hold delivery until midnight.
func (m *Money) AcceptUnpriced() {
	if m.readAccount().Today.Unpriced > 0 {
		m.changeAccount().Today.Unpriced = 0
	}
}

// NoteLimit stores the daily limit of the consumer's flags with the next commit, for read-only commands.
func (m *Money) NoteLimit(day json.RawMessage) {
	if a := m.readAccount(); !bytes.Equal(a.DayLimit, day) {
		a.DayLimit, m.changed = day, true
	}
}

// Midnight returns the end of the local day.
func (m *Money) Midnight() time.Time {
	return midnight(m.tx.box.opts.Now().Local()).UTC()
}

// midnight returns the first moment of the next day, in the time zone of now. Where the clock skips midnight,
// time.Date may return an hour of the day before.
func midnight(now time.Time) time.Time {
	const step = 15 * time.Minute // time zones change in multiples of it
	y, m, d := now.Date()
	end := time.Date(y, m, d+1, 0, 0, 0, 0, now.Location())
	for !end.After(now) || end.Day() == d {
		end = end.Add(step)
	}
	return end
}

// Refuse sets aside the entry that [Tx.Next] returned last, instead of delivering it. why is for a person.
func (t *Tx) Refuse(e Entry, reason Reason, why string) error {
	if e.offer == nil || e.offer != t.offered {
		return fmt.Errorf("set aside: %w", errNotOffered)
	}
	t.offered = nil
	failure := &Failure{Error: string(reason), Message: why, At: t.box.utcNow()}
	d := t.redeliver
	if d == nil || d.EntryID != e.EntryID || d.StartOffset != e.Start {
		return t.setAsideUnread(e, reason, e.textFile, failure)
	}
	with := *d
	with.Failure = failure
	dead := deadLetterOf(&with, reason, t.box.utcNow())
	dead.Fields = t.money.costOf(&with)
	return t.setAsideGivenBack(&with, dead)
}
