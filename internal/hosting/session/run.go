// Package session is the life of one hosted session: it runs one client after another on the session's inbox, watches
// each, ends it if need be, and reports the result. [Finish] does the last part for a session whose host is dead.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/supervise"
)

// Run hosts a session until its end, and reports the end. The error is why the session could not begin, a
// *config.Problem if the caller can fix that; then nothing is left behind and nothing was reported.
func Run(o Options) (Outcome, error) {
	if o.PTY && o.MemoryMax > 0 {
		return Outcome{}, errors.New("host a session in a terminal: --memory-max works with sessions that print, and not with --pty")
	}
	taken := signals.Catch()
	defer taken.Stop()
	h, err := begin(o)
	if err != nil {
		return Outcome{}, err
	}
	h.signals = taken
	return h.run(), nil
}

// run hosts a session that has begun. It always ends with a report.
func (h *host) run() Outcome {
	quiet, stopSweep := context.WithCancel(context.Background())
	defer stopSweep()
	ended := make(chan struct{})
	go h.handleSignals(ended)
	err := h.serve()
	if err == nil {
		go h.sweepOthers(quiet)
		if h.PTY {
			err = h.inTerminal()
		} else {
			err = h.rounds()
		}
	}
	if err != nil {
		h.log.linef("Fatal error: %v", err)
		h.change(func(s *folder.State) { s.Broken = err.Error() })
	}
	defer close(ended)
	outcome := h.conclude()
	outcome.Broken = err
	return outcome
}

func (h *host) handleSignals(ended <-chan struct{}) {
	for _, signalled := range []<-chan struct{}{h.signals.First(), h.signals.Second()} {
		select {
		case <-signalled:
		case <-ended:
			return
		}
		if h.stalled.Load() {
			continue
		}
		sig, _ := h.signals.Signal()
		grace := h.Grace
		if signalled == h.signals.Second() {
			grace = 0
		}
		h.cancel(cmp.Or(unix.SignalName(sig), sig.String()), grace)
	}
}

// cancelNow is cancel without a signal, which it sends to the launcher in a terminal.
func (h *host) cancelNow(by string, grace time.Duration) {
	h.cancel(by, grace)
	if h.PTY {
		h.endTerminal()
	}
}

func (h *host) cancel(by string, grace time.Duration) {
	h.endRequest.make(grace)
	h.noteCancel(by, grace)
	h.log.linef("cancelled by %s", by)
}

// TestOnlyStep, when set, is called at each step. Only tests set it.
var TestOnlyStep func(step string)

// step marks the end of a step of the session's life, at which tests kill the host.
func step(name string) {
	if TestOnlyStep != nil {
		TestOnlyStep(name)
	}
}

// laterError means that the session's inbox delivers nothing yet, until a time or while somebody else has it.
type laterError struct{ error }

// Passes reports whether an error of [Run] goes away by itself, as for a launcher, so that the session can be started later.
func Passes(err error) bool {
	return errors.As(err, new(*laterError)) || store.Passes(err) || supervise.ReasonOf(err).Status() == cli.ExitLater
}

const byWarm = "heartbeat-host cancel --warm"

// drain is a session's warm end: delivery stops, and the entry in flight has some time to be answered.
type drain struct {
	begun chan struct{} // closed by the first request
	asked atomic.Bool

	mu  sync.Mutex  // serializes requests
	end *time.Timer // cancels a client that has not ended
}

// cancelWarm stops delivery. The client then ends by itself once no entry is in flight; after most it is cancelled.
func (h *host) cancelWarm(ctx context.Context, most, grace time.Duration) error {
	h.drained.mu.Lock()
	defer h.drained.mu.Unlock()
	if h.drained.asked.Load() {
		return nil
	}
	h.sending.Lock()
	queue, over := h.queue, h.closed
	h.sending.Unlock()
	switch {
	case over: // nothing is in flight
		return nil
	case queue == nil:
		return errors.New("the session is only starting: try again")
	case h.PTY: // the launcher does the rest
	default:
		if err := queue.HoldBack(ctx); err != nil {
			return fmt.Errorf("hold back what waits: %w: cancel it without --warm, or try again", err)
		}
	}
	h.drained.asked.Store(true)
	h.noteCancel(byWarm, grace)
	h.log.linef("%s: nothing more is delivered, and the entry in flight has %v to be answered", byWarm, most)
	close(h.drained.begun)
	h.drained.end = time.AfterFunc(most, func() {
		h.log.linef("the entry in flight was not answered within %v", most)
		h.cancelNow(byWarm, grace)
	})
	return nil
}

// stopDrainTimer stops the timer of a warm cancel: the client has ended.
func (h *host) stopDrainTimer() {
	h.drained.mu.Lock()
	defer h.drained.mu.Unlock()
	if h.drained.end != nil {
		h.drained.end.Stop()
	}
}

func (h *host) noteCancel(by string, grace time.Duration) {
	h.change(func(s *folder.State) {
		if s.Cancel == nil && s.EndedAt == nil {
			s.Cancel = &folder.Cancel{At: time.Now().UTC(), By: by, Grace: grace.String()}
		}
	})
}

// request is the request to end the session. It may be made at any time and more than once.
type request struct {
	mu    sync.Mutex
	kill  time.Time     // when the client is killed, zero before the first one
	made  chan struct{} // closed by the first one
	again chan struct{} // gets later ones
}

// make requests the end. A second request can only shorten the grace.
func (r *request) make(grace time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kill := time.Now().Add(grace)
	if r.kill.IsZero() {
		r.kill = kill
		close(r.made)
		return
	}
	if kill.Before(r.kill) {
		r.kill = kill
	}
	select {
	case r.again <- struct{}{}:
	default:
	}
}

func (r *request) isMade() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.kill.IsZero()
}

func (r *request) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, time.Until(r.kill))
}

// untilNext returns a context that ends with the next request: at the session's end it cuts everything short that waits.
func (r *request) untilNext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	next := r.made
	if r.isMade() {
		select {
		case <-r.again: // it was about the client, which has ended
		default:
		}
		next = r.again
	}
	go func() {
		select {
		case <-next:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
