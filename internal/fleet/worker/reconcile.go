package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

var errAway = errors.New("what is held cannot be looked up while the server is away: no session is given any of it before")

// look takes in the state of the inbox.
func (a *Agent) look(ctx context.Context) {
	a.facts, a.counted = see.GlanceAgain(ctx, a.box, a.counted)
	if due := a.facts.NextDue(); !due.IsZero() && !due.After(a.facts.Now) {
		if a.try("promote", a.box.Promote(ctx)) {
			a.facts, a.counted = see.GlanceAgain(ctx, a.box, a.counted)
		}
	}
}

// reconcile compares what is held with the inbox and the stream, after a start, or when
// others may have been given some of it. Whatever was settled elsewhere, or is with another
// agent now, is taken back here without a turn, as long as no session has it.
func (a *Agent) reconcile(ctx context.Context) error {
	if a.open() == 0 {
		return nil
	}
	if !a.conn.Connected() {
		return errAway
	}
	// A transaction completes what a killed one left, outcomes among it.
	if err := a.transact(ctx, func(*inbox.Tx) error { return nil }); err != nil {
		return err
	}
	if err := a.readOutcomes(); err != nil {
		return err
	}
	TestOnlyStep("comparing")
	others := sync.OnceValue(func() map[place]holder { return a.heldByOthers(ctx) })
	for _, c := range a.ledger.All() {
		if _, known := a.outcomes[c.Entry]; known || c.Refused != "" || c.GivingBack != nil {
			continue
		}
		if err := a.reconcileOne(ctx, c, others); err != nil {
			return err
		}
	}
	a.look(ctx)
	return a.readOutcomes()
}

// open is how many of the messages that are held should have an entry in the inbox.
func (a *Agent) open() (n int) {
	for _, c := range a.ledger.All() {
		if _, known := a.outcomes[c.Entry]; !known && c.Refused == "" && c.GivingBack == nil {
			n++
		}
	}
	return n
}

// vanished reports whether more is held than the inbox has: somebody dropped an entry, or
// truncated the inbox.
func (a *Agent) vanished() bool {
	f := &a.facts
	there := int(f.Backlog.Entries) + f.Scheduled.Count
	if f.InFlight != nil {
		there++
	}
	if f.Redeliver != nil {
		there++
	}
	return f.Unreadable == nil && a.open() > there && time.Since(a.compared) > a.every()
}

func (a *Agent) reconcileOne(ctx context.Context, c upstream.Claim, others func() map[place]holder) error {
	where, err := a.find(c.Entry)
	if err != nil {
		return err
	}
	switch where {
	case "":
		// It may have come to an outcome since those were read, or be about to: a transaction
		// waits for whatever another process has begun.
		err := a.transact(ctx, func(*inbox.Tx) error { return nil })
		if err == nil {
			err = a.readOutcomes()
		}
		if _, known := a.outcomes[c.Entry]; err != nil || known {
			return err
		}
		if a.reconciled {
			// It vanished while the agent ran, under the policy drop for one. The server hands it
			// out again, as another attempt: after the last one it is a dead letter.
			a.say(fmt.Sprintf("message %s is let go: its entry is no longer in the inbox, and was neither answered nor set aside; it comes again after %v, as another attempt", words.Brief(c.ID), a.ackWait))
			return a.drop(c)
		}
		return a.giveBack(ctx, c, 0, "its entry is not in the inbox")
	case inbox.FoundAnswered:
		return a.readAll()
	}
	known, err := a.up.Known(ctx, c.ID, c.Again)
	if err != nil {
		return err
	}
	if known == nil {
		if gone, err := a.up.Gone(ctx, c); err != nil {
			return err
		} else if gone {
			known = new(upstream.Record)
		}
	}
	if known != nil {
		return a.settledElsewhere(ctx, c, where, known)
	}
	if where == inbox.FoundInFlight {
		err := claim.CheckFree(ctx, a.box)
		if errors.As(err, new(claim.BusyError)) {
			return nil // its session goes on, and the first answer counts
		}
		if err != nil {
			return err
		}
	}
	// Only the older copy is let go, so that of two agents never both do. What an agent says may
	// be out of date: then nobody has the message until the server, which nobody has told that
	// it is settled, gives it out again.
	if with := others()[place{c.ID, c.Seq}]; with.copy > c.Copy {
		return a.leave(ctx, c, where, with.agent)
	}
	return nil
}

// settledElsewhere takes back the entry of a message that another agent settled, and the
// message off the stream.
func (a *Agent) settledElsewhere(ctx context.Context, c upstream.Claim, where string, known *upstream.Record) error {
	there, err := a.takeBack(ctx, c, where, known.By()+" settled its message first")
	if err != nil || there {
		return err // its outcome, if it comes to one, is kept as superseded
	}
	left, err := a.up.Drop(ctx, c)
	if err != nil {
		return err
	}
	a.say(fmt.Sprintf("message %s was settled by %s: its entry is taken back without a turn%s", words.Brief(c.ID), known.By(), also(left)))
	return a.drop(c)
}

// leave takes back the entry of a message that another agent has now. The stream is told
// nothing: the message is with that agent, and comes again should it end there.
func (a *Agent) leave(ctx context.Context, c upstream.Claim, where, with string) error {
	there, err := a.takeBack(ctx, c, where, fmt.Sprintf("agent %s has a newer copy of its message", with))
	if err != nil || there {
		return err
	}
	a.say(fmt.Sprintf("message %s is with agent %s now: its entry is taken back without a turn", words.Brief(c.ID), with))
	return a.drop(c)
}

// takeBack takes an entry back that waits, or whose session is gone. there says that it
// stays: a session has it, or it has an outcome by now.
func (a *Agent) takeBack(ctx context.Context, c upstream.Claim, where, why string) (there bool, err error) {
	if where == inbox.FoundInFlight {
		there, err = a.abandon(ctx, c, why)
	} else {
		there, err = a.withdraw(ctx, c, why)
	}
	if err != nil || there {
		return there, err
	}
	if err := a.readOutcomes(); err != nil {
		return false, err
	}
	return a.outcomes[c.Entry].Result != nil, nil
}

// find says where an entry is, as [inbox.Receipt] does.
func (a *Agent) find(entry string) (where string, err error) {
	v, err := a.box.View()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	return v.Find(entry)
}
