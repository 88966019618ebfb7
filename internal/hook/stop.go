package hook

import (
	"context"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
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
		case held, owned, approved:
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

func (h *hook) decide(tx *inbox.Tx, still inbox.Mark) (outcome, string, error) {
	o, err := h.endTurn(tx)
	if err != nil || o != 0 {
		return o, "", err
	}
	o, e, err := h.next(tx, still)
	if err != nil || o != 0 {
		return o, "", err
	}
	text, spill, err := h.blockWith(e)
	if err == nil {
		err = h.leaveInDoubt(tx, text)
	}
	if err != nil {
		return 0, "", err
	}
	h.chargeEnd(tx)
	if _, err := tx.Deliver(e, h.recipient(e, spill)); err != nil {
		return 0, "", err
	}
	if err := h.countBlock(tx); err != nil {
		return 0, "", err
	}
	h.says = h.announcement(e)
	return delivered, text, nil
}

// awaitStill waits before any wait was begun that could be ended from outside.
func (h *hook) awaitStill() (inbox.Mark, error) {
	return h.box.AwaitStill(context.Background(), time.Duration(h.Settle))
}
