package hook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/host"
)

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
		h.idleUntil = host.SinceBoot() + int64(h.Idle)
	}
	idle := time.NewTimer(time.Duration(h.idleUntil - host.SinceBoot()))
	defer idle.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		if status, done := h.conclude(ctx); done {
			return status
		}
		due.Stop()
		if h.again > 0 {
			due.Reset(h.again)
		}
		select {
		case <-ctx.Done():
			return h.ended(context.Cause(ctx))
		case <-w.C:
		case <-h.ownerDied:
			h.ownerDied = nil
		case <-due.C:
		case <-idle.C:
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
