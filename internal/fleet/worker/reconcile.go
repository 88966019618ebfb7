package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

var errAway = errors.New("what is held cannot be compared with the stream while the server is away: until then no session gets any of it")

func (a *Agent) readFacts(ctx context.Context) {
	a.facts = see.Glance(ctx, a.box, &a.facts)
	if due := a.facts.Scheduled.Next; !due.IsZero() && !due.After(a.facts.Now) && a.try("promote", a.box.Promote(ctx)) {
		a.facts = see.Glance(ctx, a.box, &a.facts)
	}
}

// reconcile compares what is held with the inbox and the stream. If a message was settled elsewhere or is with another
// agent, reconcile takes its entry back without a turn, unless a session has the entry.
func (a *Agent) reconcile(ctx context.Context) error {
	if !slices.ContainsFunc(a.ledger.All(), a.isOpen) {
		return nil
	}
	if !a.conn.Connected() {
		return errAway
	}
	if err := a.catchUp(ctx); err != nil {
		return err
	}
	TestOnlyStep("comparing")
	a.readFacts(ctx) // the wait for another process may have been long
	for _, c := range a.ledger.All() {
		if a.isOpen(c) {
			if err := a.reconcileOne(ctx, c); err != nil {
				return err
			}
		}
	}
	a.readFacts(ctx)
	return a.readOutcomes()
}

// catchUp reads outcomes after a transaction, which waits for other processes, and completes what a killed one left.
func (a *Agent) catchUp(ctx context.Context) error {
	if err := a.transact(ctx, func(*inbox.Tx) error { return nil }); err != nil {
		return err
	}
	return a.readOutcomes()
}

// isOpen reports whether the inbox should have an unsettled entry of a message.
func (a *Agent) isOpen(c upstream.Claim) bool {
	_, known := a.outcomes[c.Entry]
	return !known && c.Refused == "" && c.GivingBack == nil
}

func (a *Agent) reconcileOne(ctx context.Context, c upstream.Claim) error {
	if a.isInFlight(c) && a.facts.Client == machine.Alive {
		return nil // the turn goes on, whoever has the message
	}
	v, err := a.box.View()
	if err != nil {
		return err
	}
	where, err := v.Find(c.Entry)
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	switch where[c.Entry] {
	case "":
		// The entry may have an outcome since the last read, or be about to have one.
		err := a.catchUp(ctx)
		if _, known := a.outcomes[c.Entry]; err != nil || known {
			return err
		}
		if a.reconciled {
			// The entry vanished while the agent ran, as under the policy drop. The server hands the message out
			// again as another attempt; after the last attempt it becomes a dead letter.
			a.say(fmt.Sprintf("message %s is let go: its entry is no longer in the inbox, and was neither answered nor set aside; it comes again after %v, as another attempt", words.Brief(c.ID), a.ackWait))
			a.drop(c)
			return nil
		}
		return a.giveBack(ctx, c, 0, "its entry is not in the inbox")
	case inbox.FoundAnswered:
		return a.readAll()
	}
	s, err := a.up.Stand(ctx, c)
	if err != nil {
		return err
	}
	if s.Lease == 0 {
		return a.letGo(ctx, c, where[c.Entry], s)
	}
	return a.ledger.Update(c.Entry, func(c *upstream.Claim) { c.Lease, c.Attempt = s.Lease, s.Attempt })
}

// letGo takes back the entry of a message that another agent has or settled. It takes a settled message off the
// stream. Any other stays there, so that it comes again should that agent end.
func (a *Agent) letGo(ctx context.Context, c upstream.Claim, where string, s upstream.Standing) error {
	why := fmt.Sprintf("is with agent %s now", cmp.Or(s.With, "nobody"))
	if s.Known != nil {
		why = "was settled by " + s.Known.By()
	}
	if where == inbox.FoundInFlight { // a session has the entry, or had it and nobody has decided about it
		if kept, err := a.abandon(ctx, c, "its message "+why); err != nil || kept {
			return err
		}
	}
	if taken, err := a.takeBack(ctx, &c, 0, why); err != nil || !taken { // it may have been put off
		return err // a later outcome is kept as superseded
	}
	TestOnlyStep("taken back")
	left, err := "", error(nil)
	if s.Known != nil {
		if left, err = a.up.Drop(ctx, c); err != nil {
			return err
		}
	}
	a.say(fmt.Sprintf("message %s %s: its entry is taken back without a turn%s", words.Brief(c.ID), why, also(left)))
	a.drop(c)
	return nil
}
