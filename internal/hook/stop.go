package hook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
)

// stop acts on the end of a turn: it settles what was in flight, and delivers what waits.
func (h *hook) stop() int {
	ctx := context.Background()
	o, err := h.look(ctx, h.tick, Runs.Advance)
	switch {
	case errors.Is(err, errNotChecked):
		return h.ended(err)
	case err != nil:
		return h.failed(err)
	case o == leave || o == resting:
		return cli.ExitOK
	case o != empty:
		h.passRuns(ctx)
	}
	switch {
	case o == delivered:
		return cli.ExitOK
	case o != approved && h.Mode == ModePersist:
		return h.persist()
	}
	return h.signal()
}

func (h *hook) tick(ctx context.Context, still inbox.Mark) (outcome, error) {
	return h.transact(ctx, func(tx *inbox.Tx) (outcome, string, error) { return h.decide(tx, still) }, h.print)
}

const idleTick = "--- IDLE TICK ---"

// persist waits until an entry arrives, and ends the turn with an idle tick if none does. It takes nothing once the
// wait was ended from outside.
func (h *hook) persist() int {
	ctx, stop := h.waitContext(h.clientPID())
	defer stop()
	// Start watching before the first look. An entry that arrives between the two would otherwise wait for the next
	// poll.
	w := h.box.Watch(cli.WatchPoll)
	defer func() { _ = w.Close() }() // the process ends
	if h.idleUntil == 0 {
		h.idleUntil = machine.SinceBoot() + int64(h.Idle)
	}
	idle := time.NewTimer(time.Duration(h.idleUntil - machine.SinceBoot()))
	defer idle.Stop()
	for {
		if status, done := h.conclude(ctx); done {
			return status
		}
		switch idled, err := h.untilNews(ctx, w, idle.C); {
		case err != nil:
			return h.ended(err)
		case idled:
			if status, done := h.conclude(ctx); done {
				return status
			}
			if err := claude.WriteBlock(h.Out, idleTick, claude.AsReason, ""); err != nil {
				return h.failed(fmt.Errorf("print the idle tick: %w", err))
			}
			return cli.ExitOK
		}
	}
}

// conclude looks once, and reports whether that ends the hook, and with which status.
func (h *hook) conclude(ctx context.Context) (status int, done bool) {
	o, err := h.look(ctx, h.tick, Runs.Step)
	switch {
	case err == nil && o == delivered:
		h.passRuns(ctx)
		return cli.ExitOK, true // even if a signal came meanwhile: the decision is printed
	case ctx.Err() != nil:
		return h.ended(context.Cause(ctx)), true
	case errors.Is(err, errSessionGone):
		return h.ended(err), true
	case err != nil:
		return h.failed(err), true
	case o == leave:
		return cli.ExitOK, true
	case o == approved:
		return h.signal(), true
	}
	return cli.ExitOK, false
}

// decision decides what one look at the inbox comes to, and the text to hand over.
type decision func(*inbox.Tx) (outcome, string, error)

// transact commits what decide comes to, and then hands over the text that it delivers. It looks again after running a
// check, or after waiting for the transcript.
func (h *hook) transact(ctx context.Context, decide decision, hand func(context.Context, *inbox.Tx, string) error) (outcome, error) {
	for {
		o, err := h.transactOnce(ctx, decide, hand)
		if errors.Is(err, errNeedsRuns) && ctx.Err() == nil {
			err = h.becomeFull()
		}
		switch {
		case err == nil && o == unchecked:
			if err := h.check(ctx); err != nil {
				return 0, err
			}
		case err != nil || o != unclear:
			return o, err
		default:
			// The inbox's lock is free meanwhile: the hook that waits here is mostly the second one of a Stop, and others
			// have work to do. The wait has a deadline, because a transcript may grow without end.
			for grown := false; !grown && time.Now().Before(h.watched.deadline) && ctx.Err() == nil; {
				time.Sleep(transcriptPoll)
				grown = claude.TranscriptSize(h.watched.path) != h.watched.size
			}
		}
	}
}

// transactOnce is one transaction. Once ctx is done it takes nothing.
func (h *hook) transactOnce(ctx context.Context, decide decision, hand func(context.Context, *inbox.Tx, string) error) (outcome, error) {
	h.again, h.settled, h.answered = 0, nil, nil
	tx, err := h.box.Begin(ctx)
	if err != nil {
		return 0, err
	}
	o, text, err := decide(tx)
	if err == nil && o == delivered {
		err = h.stillWanted(ctx)
	}
	if err == nil && o != leave && o != unclear {
		err = tx.Commit()
	}
	h.notifier.drained = err == nil && o == empty && h.settled != nil
	switch {
	case errors.Is(err, inbox.ErrUnfollowed):
		err = h.takeBack(tx, err)
	case err == nil && o == delivered:
		err = hand(ctx, tx, text)
	}
	if err == nil {
		h.forgetSpill(tx.InFlight())
	}
	if !errors.Is(err, errNeedsRuns) { // else the full command sets them aside
		h.aside = inbox.AddSetAside(h.aside, tx.SetAside()...)
	}
	if err != nil || o != more {
		for _, s := range h.aside {
			h.Note("%s", s)
		}
		h.aside = nil
	}
	return o, errors.Join(err, h.end(tx))
}

// look repeats tick while there is more to do, and once a last line has stood still. While nothing waits, step reports
// whether the runs brought more.
func (h *hook) look(
	ctx context.Context, tick func(context.Context, inbox.Mark) (outcome, error), step func(Runs, context.Context) bool,
) (outcome, error) {
	var still inbox.Mark
	for ctx.Err() == nil {
		o, err := tick(ctx, still)
		switch {
		case err != nil:
			return o, err
		case o == more, o == empty && h.runs != nil && step(h.runs, ctx):
		case o != torn:
			return o, nil
		default:
			if still, err = h.box.AwaitStill(ctx, time.Duration(h.Settle)); err != nil {
				return 0, err
			}
		}
	}
	return 0, context.Cause(ctx)
}

// record commits what an event other than Stop says. A failure is said and has no other effect, because the exit
// status decides nothing at such an event.
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
