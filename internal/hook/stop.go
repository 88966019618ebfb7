package hook

import (
	"context"
	"errors"

	"heartbeat/internal/cli"

	"heartbeat/inbox"
	"heartbeat/orchestrate/effect"
)

// outcome is what one look at the inbox came to.
type outcome int

const (
	delivered outcome = iota + 1 // the decision is printed
	approved                     // nothing is to be delivered in this turn
	empty                        // nothing waits
	held                         // delivery is paused
	torn                         // a last line waits for its newline
	leave                        // another hook acted on this very Stop
	resting                      // the entry in flight waits for tasks in the background
	unclear                      // the transcript may tell more soon
	more                         // so much was set aside that others come first
)

// stop acts on the end of a turn: it settles what was in flight, and delivers
// what waits.
func (h *hook) stop() int {
	var still inbox.Mark
	for {
		o, err := h.tick(context.Background(), still)
		if err != nil {
			return h.failed(err)
		}
		switch o {
		case leave, resting:
			return cli.ExitOK
		case delivered:
			h.passRuns(context.Background())
			return cli.ExitOK
		case torn:
			if still, err = h.awaitStill(); err != nil {
				return h.failed(err)
			}
			continue
		case more:
			continue
		case empty:
			if h.runs != nil && h.runs.Advance(context.Background()) {
				continue
			}
		case held, approved:
			h.passRuns(context.Background())
		}
		if o != approved && h.Mode == ModePersist {
			return h.persist()
		}
		return h.approve()
	}
}

// tick is one transaction of a hook that ends the turn itself.
func (h *hook) tick(ctx context.Context, still inbox.Mark) (outcome, error) {
	return h.transact(ctx, func(tx *inbox.Tx) (outcome, string, error) { return h.decide(tx, still) }, h.print)
}

// decision is what one look at the inbox comes to, and the text to hand over.
type decision func(*inbox.Tx) (outcome, string, error)

// transact commits what decide comes to, and then hands over the text that it
// delivers. Where the transcript has to tell first, it looks again.
func (h *hook) transact(ctx context.Context, decide decision, hand func(context.Context, *inbox.Tx, string) error) (outcome, error) {
	for {
		o, err := h.transactOnce(ctx, decide, hand)
		if errors.Is(err, errNeedsRuns) && ctx.Err() == nil {
			err = h.becomeFull()
		}
		if err != nil || o != unclear {
			return o, err
		}
		h.watched.await(ctx)
	}
}

// transactOnce is one transaction. Once ctx is done nothing is taken any more.
func (h *hook) transactOnce(ctx context.Context, decide decision, hand func(context.Context, *inbox.Tx, string) error) (outcome, error) {
	h.again, h.settled, h.answered = 0, nil, nil
	tx, err := h.box.Begin(ctx)
	if err != nil {
		return 0, err
	}
	say := func(bool) {}
	if h.open == nil {
		say = h.hold()
	}
	o, text, err := decide(tx)
	if err == nil && o == delivered {
		err = h.stillWanted(ctx)
	}
	if err == nil && o != leave && o != unclear {
		err = tx.Commit()
	}
	if err == nil && o == delivered {
		err = hand(ctx, tx, text)
	}
	if err == nil {
		h.forgetSpill(tx.InFlight())
	}
	if dropped := errors.Is(err, errNeedsRuns); dropped {
		say(false)
	} else {
		say(true)
		h.aside = inbox.AddSetAside(h.aside, tx.SetAside()...)
	}
	if err != nil || o != more {
		h.noteAside()
	}
	return o, errors.Join(err, h.end(tx))
}

func (h *hook) decide(tx *inbox.Tx, still inbox.Mark) (outcome, string, error) {
	o, err := h.endTurn(tx)
	if err != nil || o != 0 {
		return o, "", err
	}
	o, e, err := h.next(tx, still)
	if err != nil || o != 0 {
		return o, "", err
	}
	if _, err := tx.Deliver(e, h.recipient(e)); err != nil {
		return 0, "", err
	}
	h.says = h.announcement(e)
	return delivered, introduce(h.Preamble, effect.Text(e)), nil
}
