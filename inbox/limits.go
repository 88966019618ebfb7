package inbox

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/internal/money/budget"
)

// Limits are what the entry's envelope says that it may cost. They were understood when
// it was delivered.
func (d *Delivery) Limits() budget.Limits {
	if !d.mayBeEnvelope() {
		return budget.Limits{}
	}
	l, err := d.entry().Limits()
	if err != nil {
		return budget.Limits{}
	}
	return l
}

// maxRaised is how many entries may have limits that a person set and not be delivered
// yet. Of more, the oldest are set aside, and can be given limits again.
const maxRaised = 64

var errRaised = errors.New("limits: raised is what dead-letter requeue says of the limits that it is given: leave it out")

// noteRaised notes that a person set the limits of this entry.
func (t *Tx) noteRaised(entryID string) {
	a := t.changeAccount()
	a.Raised = append(slices.DeleteFunc(a.Raised, func(id string) bool { return id == entryID }), entryID)
	a.Raised = a.Raised[max(0, len(a.Raised)-maxRaised):]
}

// checkLimits says what is wrong with the limits of an entry that was never delivered.
func (t *Tx) checkLimits(e Entry) error {
	l, err := e.Limits()
	if err == nil && l.Raised && !slices.Contains(t.readAccount().Raised, e.EntryID) {
		err = errRaised
	}
	return err
}

// Entry is what was delivered, decoded.
func (d *Delivery) Entry() Entry { return d.entry() }

// Spent is what the entry's earlier deliveries have cost, as far as that is known, and
// for how long they were worked on.
func (e Entry) Spent() budget.Spent { return budget.Spent{Amount: e.spent, Time: e.took} }

// Worked says for how long the delivery in flight was worked on, for the transaction
// that gives it back and counts it.
func (t *Tx) Worked(d time.Duration) { t.worked = max(0, d) }

// AcceptUnpriced has a person's resume take what went to models without a price today for nothing:
// otherwise a limit of the day in dollars would hold delivery until midnight.
func (t *Tx) AcceptUnpriced() {
	if t.readAccount().Today.Unpriced > 0 {
		t.changeAccount().Today.Unpriced = 0
	}
}

// NoteLimit keeps, with the next commit, what a day may cost by the consumer's flags, for those who only look.
func (t *Tx) NoteLimit(day budget.Limits) {
	if a := t.readAccount(); a.DayLimit != day {
		a.DayLimit, t.accountChanged = day, true
	}
}

// Midnight is when the day ends, by the local clock.
func (t *Tx) Midnight() time.Time {
	return midnight(t.box.opts.Now().Local()).UTC()
}

// midnight is the first moment of another day, in the place of now. Where the clock
// skips midnight, time.Date may say an hour of the day before.
func midnight(now time.Time) time.Time {
	const step = 15 * time.Minute // by which clocks are set
	y, m, d := now.Date()
	end := time.Date(y, m, d+1, 0, 0, 0, 0, now.Location())
	for !end.After(now) || end.Day() == d {
		end = end.Add(step)
	}
	return end
}

// OverBudget sets the entry in flight aside, since it has reached a limit: figures say
// which, in words.
func (t *Tx) OverBudget(figures string) error {
	if t.inFlight == nil {
		return fmt.Errorf("set aside: %w", errNothingInFlight)
	}
	d := *t.inFlight
	d.Failure = t.overBudget(figures)
	t.setInFlight(&d)
	return t.DeadLetter(ReasonOverBudget)
}

func (t *Tx) overBudget(figures string) *Failure {
	return &Failure{Error: string(ReasonOverBudget), Message: figures, At: t.box.utcNow()}
}

// RefuseOverBudget sets aside the entry that [Tx.Next] returned last, in place of its
// delivery, since its earlier deliveries have reached a limit.
func (t *Tx) RefuseOverBudget(e Entry, figures string) error {
	return t.refuse(e, ReasonOverBudget, t.overBudget(figures))
}

// RefuseCheck sets aside the entry that [Tx.Next] returned last, in place of its delivery,
// since nobody could check it as it asks.
func (t *Tx) RefuseCheck(e Entry, why string) error {
	return t.refuse(e, ReasonCheck, &Failure{Error: string(ReasonCheck), Message: why, At: t.box.utcNow()})
}

func (t *Tx) refuse(e Entry, reason Reason, failure *Failure) error {
	if e.offer == nil || e.offer != t.offered {
		return fmt.Errorf("set aside: %w", errNotOffered)
	}
	t.offered = nil
	d := t.redeliver
	if d == nil || d.EntryID != e.EntryID || d.StartOffset != e.Start {
		return t.setAsideUnread(e, reason, e.textFile, failure)
	}
	with := *d
	with.Failure = failure
	dead := deadLetterOf(&with, reason, t.box.utcNow())
	dead.Fields = t.costOf(&with)
	return t.setAsideGivenBack(&with, dead)
}
