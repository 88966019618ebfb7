package worker

import (
	"context"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
)

// giveBackHeld gives back what waits while the inbox backs off, stands still, or is paused with GiveBack set. It
// also completes give-backs that began before.
func (a *Agent) giveBackHeld(ctx context.Context) {
	why := ""            // a sentence if delivery is held back for so long that waiting messages are given back
	delay := time.Second // which keeps this agent from taking them again
	switch f := &a.facts; {
	case f.Backoff != nil && time.Until(f.Backoff.Until) > longHold:
		why = "sessions here are held up until " + words.Stamp(f.Backoff.Until)
	case f.Paused != nil && a.o.GiveBack && (f.Paused.Until == nil || time.Until(*f.Paused.Until) > 0):
		why = "the inbox is paused"
	case a.keep.stalled.Load():
		why, delay = "nothing moves here, and it waits behind that", 0 // this agent takes no message meanwhile
	}
	if why != "" && a.pulling != nil {
		a.stopPulling() // it would get what is given back
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

// giveBack takes the entry of a claim back, returns its message to the stream, where it waits for delay, and drops
// the claim. The entry and its claim stay if a session has the entry or it has come to an outcome meanwhile.
func (a *Agent) giveBack(ctx context.Context, c upstream.Claim, delay time.Duration, why string) error {
	if c.GivingBack == nil {
		var w *inbox.Entry
		waits := func(*inbox.Tx) (err error) { w, err = a.waiting(c.Entry); return err }
		if err := a.transact(ctx, waits); err != nil { // after whatever has begun
			return err
		}
		until := time.Now().Add(delay).UTC()
		c.GivingBack, c.Used = &until, w != nil && w.Attempt > 1
		if err := a.ledger.Update(c.Entry, func(kept *upstream.Claim) { kept.GivingBack, kept.Used = c.GivingBack, c.Used }); err != nil {
			return err
		}
	}
	there, err := a.withdraw(ctx, c, "its message goes back to the stream")
	if err != nil {
		return err
	}
	if err := a.readOutcomes(); err != nil {
		return err
	}
	// Any outcome but a cancellation, which may be this give-back's own, keeps the claim.
	if o := a.outcomes[c.Entry]; there || o.Result != nil || o.DeadLetter != nil && o.DeadLetter.Reason != inbox.ReasonCanceled {
		return a.ledger.Update(c.Entry, func(c *upstream.Claim) { c.GivingBack, c.Used = nil, false })
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
	return a.drop(c)
}

func (a *Agent) drop(c upstream.Claim) error {
	if err := a.ledger.Drop(c.Entry); err != nil {
		return err
	}
	delete(a.outcomes, c.Entry)
	return nil
}

func (a *Agent) isInFlight(c upstream.Claim) bool {
	d := a.facts.InFlight
	return d != nil && d.ID() == c.Entry
}
