package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// giveBackHeld completes give-backs, and gives back what waits while the inbox backs off, is paused or stands still.
func (a *Agent) giveBackHeld(ctx context.Context) {
	why := ""            // why what waits is given back, or ""
	delay := time.Second // keeps this agent from taking it again
	switch f := &a.facts; {
	case f.Backoff != nil && time.Until(f.Backoff.Until) > longHold:
		why = "sessions here are held up until " + words.Stamp(f.Backoff.Until)
	case f.Paused != nil && a.o.GiveBack && (f.Paused.Until == nil || time.Until(*f.Paused.Until) > 0):
		why = "the inbox is paused"
	case a.keep.stalled.Load() && a.o.Launcher != "" && f.InFlight == nil && a.ledger.Len() > 0:
		why, delay = a.rest(), 0 // this agent takes no message meanwhile
	case a.keep.stalled.Load():
		why, delay = "nothing moves here, and it waits behind that", 0
	}
	if why != "" && a.pulling != nil {
		a.stopPulling() // the request would get what is given back
		return
	}
	for _, c := range a.ledger.All() {
		what := "give back " + c.Entry
		_, known := a.outcomes[c.Entry]
		switch {
		case known || c.Refused != "" || !a.conn.Connected() || !a.due(what):
		case c.GivingBack != nil:
			a.try(what, a.giveBack(ctx, c, time.Until(*c.GivingBack), why))
		case why != "" && !a.isInFlight(c):
			a.try(what, a.giveBack(ctx, c, delay, why))
		}
	}
}

// rest has an agent whose sessions do not begin take no message for a while: each would wait here for --stall.
func (a *Agent) rest() string {
	if r := a.retries[beginning]; a.due(beginning) {
		_, sentence := a.facts.Explain()
		at := time.Now().Add(a.o.Stall << min(r.tries, 3))
		a.retries[beginning] = retry{at: at, tries: r.tries + 1, why: fmt.Sprintf("no session began for %s, so it takes no message until %s, or until it is started anew: %s", words.Took(a.o.Stall), words.Stamp(at), sentence)}
		delete(a.retries, launching) // the next message is another try
	}
	return a.retries[beginning].why
}

// giveBack takes the entry of a claim back, returns its message to the stream, where it waits for delay, and drops
// the claim.
func (a *Agent) giveBack(ctx context.Context, c upstream.Claim, delay time.Duration, why string) error {
	if taken, err := a.takeBack(ctx, &c, delay, "goes back to the stream"); err != nil || !taken {
		return err
	}
	TestOnlyStep("withdrawn")
	left, err := a.up.GiveBack(ctx, c, max(0, delay))
	if err != nil {
		return err
	}
	TestOnlyStep("given back")
	if why != "" {
		why = ": " + why
	}
	a.say(fmt.Sprintf("message %s is given back%s%s", words.Brief(c.ID), why, also(left)))
	a.drop(c)
	return nil
}

// takeBack takes the entry of a claim back, and notes that first: the outcome that it may leave in the inbox is not the
// message's. The entry and its claim stay if a session has the entry or it has come to an outcome meanwhile.
func (a *Agent) takeBack(ctx context.Context, c *upstream.Claim, delay time.Duration, why string) (taken bool, err error) {
	if c.GivingBack == nil {
		var w *inbox.Entry
		waits := func(*inbox.Tx) (err error) { w, err = a.waiting(c.Entry); return err }
		if err := a.transact(ctx, waits); err != nil { // after whatever has begun
			return false, err
		}
		c.GivingBack, c.Used = new(time.Now().Add(delay).UTC()), w != nil && w.Attempt > 1
		if err := a.ledger.Update(c.Entry, func(kept *upstream.Claim) { kept.GivingBack, kept.Used = c.GivingBack, c.Used }); err != nil {
			return false, err
		}
	}
	kept, err := a.withdraw(ctx, *c, "its message "+why)
	if err == nil {
		err = a.readOutcomes()
	}
	if err != nil {
		return false, err
	}
	// Any outcome but a cancellation, which may be of this take-back, keeps the claim.
	if o := a.outcomes[c.Entry]; kept || o.Result != nil || o.DeadLetter != nil && o.DeadLetter.Reason != inbox.ReasonCanceled {
		return false, a.ledger.Update(c.Entry, func(c *upstream.Claim) { c.GivingBack, c.Used = nil, false })
	}
	return true, nil
}

func (a *Agent) drop(c upstream.Claim) {
	a.ledger.Forget(c.Entry)
	delete(a.outcomes, c.Entry)
}

func (a *Agent) isInFlight(c upstream.Claim) bool {
	d := a.facts.InFlight
	return d != nil && d.ID() == c.Entry
}

// withdraw takes the entry of a claim out of the queue, if it waits there. kept reports that a session has the entry,
// or had it and nobody has decided about it.
func (a *Agent) withdraw(ctx context.Context, c upstream.Claim, why string) (kept bool, err error) {
	for again := true; again; again = errors.Is(err, inbox.ErrMore) {
		err = a.transact(ctx, func(tx *inbox.Tx) error {
			d := tx.InFlight()
			if kept = d != nil && d.ID() == c.Entry; kept {
				return nil
			}
			return a.takeOut(tx, c, why)
		})
	}
	if err != nil {
		err = fmt.Errorf("take the entry %q back from the inbox: %w", c.Entry, err)
	}
	return kept, err
}

// takeOut settles a waiting entry. The next entry to deliver is a case of its own, since it leaves no dead letter.
func (a *Agent) takeOut(tx *inbox.Tx, c upstream.Claim, why string) error {
	if tx.InFlight() == nil {
		switch taken, err := recovery.TakeBack(tx, entryOf(c), why); {
		case taken && err == nil || errors.Is(err, inbox.ErrMore):
			return errors.Join(tx.Commit(), err)
		case err != nil:
			return err
		}
	}
	w, err := a.waiting(c.Entry)
	switch {
	case err != nil:
		return err
	case w != nil && w.Start < w.End:
		_, err = tx.Cancel(w.EntryID, w.Start)
	case w != nil:
		_, err = tx.CancelScheduled(w.EntryID)
	}
	if errors.Is(err, inbox.ErrNotWaiting) {
		err = nil
	}
	if err == nil && tx.Dirty() {
		err = tx.Commit()
	}
	return err
}

// waiting returns an entry that waits in the queue or was put off, or nil.
func (a *Agent) waiting(entry string) (found *inbox.Entry, err error) {
	v, err := a.box.View()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	err = v.Waits(nil, func(w inbox.Waiting) bool {
		if w.ID == entry {
			found = &w.Entry
		}
		return found == nil
	})
	if err != nil || found != nil {
		return found, err
	}
	err = a.box.EachScheduled(func(s inbox.Scheduled) bool {
		if s.ID == entry {
			found = &inbox.Entry{ID: s.ID, EntryID: s.EntryID, Attempt: 2} // it was delivered, and put off
		}
		return found == nil
	})
	return found, err
}

// abandon settles an entry in flight whose session is gone, and takes it back if it is then to be delivered again.
// kept reports that its session lives.
func (a *Agent) abandon(ctx context.Context, c upstream.Claim, why string) (kept bool, err error) {
	if err := claim.CheckFree(ctx, a.box); errors.As(err, new(claim.BusyError)) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	err = a.transact(ctx, func(tx *inbox.Tx) error {
		if d := tx.InFlight(); d == nil || d.ID() != c.Entry {
			return nil
		}
		// Whatever becomes of the entry here, the stream decides about its message.
		settings := a.o.Orphan
		settings.Policy, settings.Chosen = recovery.Retry, true
		report, err := recovery.Settle(tx, recovery.Asker{
			Settings: settings, Box: a.box,
			Note: func(format string, args ...any) { a.say(fmt.Sprintf(format, args...)) },
		}, recovery.Sight{})
		if kept = report.Action == recovery.Owned; err != nil || kept {
			return err
		}
		if _, err := recovery.TakeBack(tx, entryOf(c), why); err != nil && !errors.Is(err, inbox.ErrMore) {
			return err
		}
		return tx.Commit()
	})
	return kept, err
}

func entryOf(c upstream.Claim) func(inbox.Entry) bool {
	return func(e inbox.Entry) bool { return e.ID == c.Entry }
}

// transact runs do in a transaction, and says the transaction's warnings.
func (a *Agent) transact(ctx context.Context, do func(*inbox.Tx) error) (err error) {
	tx, err := a.box.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		for _, w := range tx.Warnings() {
			a.say(w)
		}
		err = errors.Join(err, tx.Close())
	}()
	return do(tx)
}
