package hook

import (
	"context"
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
)

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
		changed := tx.Dirty()
		err = tx.Commit()
		h.account.kept = h.account.kept || err == nil && changed && h.account.told
	}
	h.notifier.drained = err == nil && o == empty && h.settled != nil
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

// look is one transaction, and another when a last line had to stand still first.
func (h *hook) look(ctx context.Context, tick func(context.Context, inbox.Mark) (outcome, error)) (outcome, error) {
	var still inbox.Mark
	for ctx.Err() == nil {
		o, err := tick(ctx, still)
		if err == nil && o == empty && h.stepRuns(ctx) {
			continue
		}
		if err == nil && o == more {
			continue
		}
		if err != nil || o != torn {
			return o, err
		}
		if still, err = h.box.AwaitStill(ctx, time.Duration(h.Settle)); err != nil {
			return 0, err
		}
	}
	return 0, context.Cause(ctx)
}

// record commits what an event beside Stop tells. A failure is said and has no
// other effect: such an event's exit status decides nothing.
func (h *hook) record(change func(*inbox.Tx) error) int {
	tx, err := h.box.Begin(context.Background())
	if err == nil {
		if err = change(tx); err == nil {
			err = tx.Commit()
		}
		err = errors.Join(err, h.end(tx))
	}
	if err != nil {
		h.Complain(err)
	}
	return cli.ExitOK
}

// outcome is what one look at the inbox came to.
type outcome int

const (
	delivered outcome = iota + 1 // the decision is printed
	approved                     // nothing is to be delivered in this turn
	empty                        // nothing waits
	held                         // delivery is paused
	owned                        // the entry in flight is another session's, which lives
	torn                         // a last line waits for its newline
	leave                        // another hook acted on this very Stop
	resting                      // the entry in flight waits for tasks in the background
	unclear                      // the transcript may tell more soon
	more                         // so much was set aside that others come first
)
