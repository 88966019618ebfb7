package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	recovery "heartbeat/recover"
)

// stop acts on the end of a turn: it settles what was in flight, and delivers what waits.
func (h *hook) stop() int {
	ctx := context.Background()
	o, err := h.poll(ctx, h.decide, Runs.Advance)
	switch {
	case errors.Is(err, errNotChecked):
		return h.ended(err)
	case err != nil:
		return h.failed(err)
	case o == leave || o == resting:
		return cli.ExitOK
	case o != empty && h.runs != nil:
		h.runs.Pass(ctx, h.lastSettled)
	}
	switch {
	case o == delivered:
		return cli.ExitOK
	case o != approved && h.Mode == ModePersist && !h.isInner():
		return h.persist()
	}
	return h.signal()
}

const idleTick = "--- IDLE TICK ---"

// persist waits until an entry arrives, and ends the turn with an idle tick if none does. It delivers nothing once the
// wait was ended from outside.
func (h *hook) persist() int {
	ctx, stop := h.waitContext()
	defer stop()
	w := h.box.Watch(cli.WatchPoll)  // before the first poll, so that no entry comes unnoticed between the two
	defer func() { _ = w.Close() }() // the process ends
	if h.IdleUntil == 0 {
		h.IdleUntil = machine.SinceBoot() + int64(h.Idle)
	}
	idle := time.NewTimer(time.Duration(h.IdleUntil - machine.SinceBoot()))
	defer idle.Stop()
	for idled := false; ; {
		o, err := h.poll(ctx, h.decide, Runs.Step)
		switch {
		case err == nil && o == delivered:
			if h.runs != nil {
				h.runs.Pass(ctx, h.lastSettled)
			}
			return cli.ExitOK // even if a signal came meanwhile: the decision is printed
		case ctx.Err() != nil:
			return h.ended(context.Cause(ctx))
		case errors.Is(err, errSessionGone):
			return h.ended(err)
		case err != nil:
			return h.failed(err)
		case o == leave:
			return cli.ExitOK
		case o == approved:
			return h.signal()
		case idled:
			if err := claude.WriteBlock(h.Out, idleTick, claude.AsReason, ""); err != nil {
				return h.failed(fmt.Errorf("print the idle tick: %w", err))
			}
			return cli.ExitOK
		}
		if idled, err = h.untilNews(ctx, w, idle.C); err != nil {
			return h.ended(err)
		}
	}
}

// decision decides the outcome of one poll, and the text to hand over. still is as for [inbox.Tx.Next].
type decision func(tx *inbox.Tx, still inbox.Mark) (outcome, string, error)

// poll repeats transact while there is more to do: after a check, once the transcript may show more, and once a last line
// has stood still. If nothing waits, step reports whether the runs brought more. The inbox's lock is free between two
// transactions.
func (h *hook) poll(ctx context.Context, decide decision, step func(Runs, context.Context) bool) (outcome, error) {
	var still inbox.Mark
	err := context.Cause(ctx)
	for err == nil {
		var o outcome
		o, err = h.transact(ctx, still, decide)
		if errors.Is(err, errNeedsRuns) && ctx.Err() == nil {
			err = h.becomeFull()
		}
		switch {
		case err != nil:
		case o == unchecked:
			if err = h.check(ctx); err == nil {
				continue // its outcome is noted, even if the wait was ended just now
			}
		case o == unclear:
			h.awaitTranscript(ctx)
		case o == more, o == empty && h.runs != nil && step(h.runs, ctx):
		case o == torn:
			still, err = h.box.AwaitStill(ctx, time.Duration(h.Settle))
		default:
			if o == empty && h.settled != nil && h.Notify.Drained { // not before the step, which may be a run's last
				h.startNotifier()
			}
			return o, nil
		}
		err = cmp.Or(err, context.Cause(ctx))
	}
	return 0, err
}

// awaitTranscript returns once the transcript has grown. Usually the second hook of a Stop waits here. The deadline holds
// for all waits of a hook together, because a transcript may grow without end.
func (h *hook) awaitTranscript(ctx context.Context) {
	for grown := false; !grown && time.Now().Before(h.watched.deadline) && ctx.Err() == nil; {
		time.Sleep(transcriptPoll)
		grown = claude.TranscriptSize(h.watched.path) != h.watched.size
	}
}

// transact commits what decide decides, in one transaction, and hands over the text. Once ctx is done it delivers nothing.
func (h *hook) transact(ctx context.Context, still inbox.Mark, decide decision) (outcome, error) {
	h.again, h.settled, h.answered, h.doubtful = 0, nil, nil, nil
	tx, err := h.box.Begin(ctx)
	if err != nil {
		return 0, err
	}
	o, text, err := decide(tx, still)
	if err == nil && o == delivered {
		err = h.stillWanted(ctx)
	}
	if err == nil && o != leave && o != unclear {
		if h.doubtful != nil {
			tx.In(h.input.SessionID).LeaveInDoubt(h.doubtful, h.doubt(text))
		}
		err = tx.Commit()
	}
	switch {
	case errors.Is(err, inbox.ErrUnfollowed):
		err = h.takeBack(tx, err)
	case err == nil && o == delivered:
		err = h.handOver(ctx, tx, text)
	}
	if err == nil && h.settled != nil && recovery.EvidenceOf(h.settled).Spill != "" {
		if err := recovery.ForgetSpills(h.box, tx.InFlight()); err != nil {
			h.Note("%v: compact removes it", err) // the commit stands
		}
	}
	if !errors.Is(err, errNeedsRuns) { // else the full command sets them aside again
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

// record commits an event other than Stop. A failure is only printed, because at such an event the exit status decides
// nothing.
func (h *hook) record(change func(*inbox.Tx) error) int {
	_, err := h.transact(context.Background(), inbox.Mark{}, func(tx *inbox.Tx, _ inbox.Mark) (outcome, string, error) {
		return 0, "", change(tx)
	})
	if err != nil {
		h.Complain(err)
	}
	return cli.ExitOK
}
