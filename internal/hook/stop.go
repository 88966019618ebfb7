package hook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	recovery "heartbeat/recover"
)

// stop acts on the end of a turn: it settles what was in flight, and delivers
// what waits.
func (h *hook) stop() int {
	var still inbox.Mark
	for {
		o, err := h.tick(context.Background(), still)
		if errors.Is(err, errNotChecked) {
			return h.ended(err)
		}
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
	if err == nil && o == unmet {
		return h.goOn(tx)
	}
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
	to, err := h.addressed(e, h.recipient(e, spill))
	if err == nil {
		_, err = tx.Deliver(e, to)
	}
	if err != nil {
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

// standsBack reports whether a launcher gave the session a hook of its own. A hook from
// the project's settings then leaves every event to that one. If it has another inbox,
// it would deliver into a session that works for this one, and keep it from ending.
func (h *hook) standsBack() bool {
	of := os.Getenv(cli.LaunchedVariable)
	if of == "" || h.Launched {
		return false
	}
	if !inbox.SameInbox(of, h.box.Path()) {
		h.Note("this session works for %s, by way of heartbeat-launch: the hook of %s does nothing in it", of, h.box.Path())
	}
	return true
}

// next is the entry to deliver, or why there is none.
func (h *hook) next(tx *inbox.Tx, still inbox.Mark) (outcome, inbox.Entry, error) {
	asker := h.asker()
	hold, err := recovery.Held(tx, asker)
	if err != nil {
		return 0, inbox.Entry{}, err
	}
	if h.isHeld(hold); hold.Any() {
		return held, inbox.Entry{}, nil
	}
	switch e, err := recovery.Next(tx, asker, still); {
	case errors.Is(err, inbox.ErrEmpty):
		return empty, e, nil
	case errors.Is(err, inbox.ErrTorn):
		return torn, e, nil
	case errors.Is(err, inbox.ErrMore):
		return more, e, nil
	default:
		return 0, e, err
	}
}

// isHeld says once why delivery is held, and once that it continues.
func (h *hook) isHeld(hold recovery.Hold) {
	pause, backoff := hold.Paused, hold.Backoff
	said, end := "", ""
	if backoff != nil {
		said, end = backoff.String(), inbox.BackoffEnds
		h.lookAgainIn(time.Until(backoff.Until))
	}
	if pause != nil {
		said, end = pause.String(), pause.Ends()
		if pause.Until != nil {
			h.lookAgainIn(time.Until(*pause.Until))
		}
	}
	if s := hold.Stopping; s != nil {
		said, end = s.String(), inbox.StoppingEnds
		h.lookAgainIn(maxRecheck)
	}
	switch {
	case said == h.paused:
	case said == "":
		h.Note("delivery goes on: it was %s", h.paused)
	default:
		h.Note("%s: nothing is delivered until %s", said, end)
	}
	h.paused = said
}

// persist waits in the hook until an entry arrives, and ends the turn with an
// idle tick when none does. Nothing is taken once the wait was ended from
// outside.
func (h *hook) persist() int {
	ctx, stop := h.waitContext(h.clientPID())
	defer stop()
	// Watching begins before the first look, or an entry that arrives between
	// the two would wait for the next poll.
	w := h.box.Watch(cli.WatchPoll)
	defer func() { _ = w.Close() }() // best effort: the process ends
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
			return h.idleTick(ctx)
		}
	}
}

// conclude looks once, and reports whether that ends the hook, and how.
func (h *hook) conclude(ctx context.Context) (status int, done bool) {
	o, err := h.look(ctx, h.tick)
	switch {
	case err == nil && o == delivered:
		h.passRuns(ctx)
		return cli.ExitOK, true // even if a signal came meanwhile: it is printed
	case ctx.Err() != nil:
		return h.ended(context.Cause(ctx)), true
	case errors.Is(err, errSessionGone):
		return h.ended(err), true
	case err != nil:
		return h.failed(err), true
	case o == leave:
		return cli.ExitOK, true
	case o == approved:
		return h.approve(), true
	}
	return cli.ExitOK, false
}

func (h *hook) idleTick(ctx context.Context) int {
	if status, done := h.conclude(ctx); done {
		return status
	}
	if err := claude.WriteBlock(h.Out, idleTick, claude.AsReason, ""); err != nil {
		return h.failed(fmt.Errorf("print the idle tick: %w", err))
	}
	return cli.ExitOK
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
		switch {
		case err == nil && o == unchecked:
			if err := h.check(ctx); err != nil {
				return 0, err
			}
		case err != nil || o != unclear:
			return o, err
		default:
			h.watched.await(ctx)
		}
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
	unchecked                    // the check of the entry in flight is to be run first
	unmet                        // it failed: the entry in flight goes on with what it printed
)
