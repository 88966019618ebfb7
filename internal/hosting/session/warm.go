package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/hosting/folder"
)

// byWarm is who ends a session warm.
const byWarm = "heartbeat-host cancel --warm"

// drain is a session's warm end: delivery stops, and the entry in flight has some time to be answered.
type drain struct {
	begun chan struct{} // closed with the first request
	asked atomic.Bool

	mu  sync.Mutex  // serializes requests
	end *time.Timer // when the client is ended all the same
}

// cancelWarm stops delivery. A client without an entry in flight then ends by itself; one that does
// not within most is cancelled.
func (h *host) cancelWarm(ctx context.Context, most, grace time.Duration) error {
	h.drained.mu.Lock()
	defer h.drained.mu.Unlock()
	if h.drained.asked.Load() {
		return nil
	}
	h.sending.Lock()
	queue, over := h.queue, h.over
	h.sending.Unlock()
	switch {
	case over: // nothing is in flight any more
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

// undrain stops the timer of a warm cancel: the client has ended.
func (h *host) undrain() {
	h.drained.mu.Lock()
	defer h.drained.mu.Unlock()
	if h.drained.end != nil {
		h.drained.end.Stop()
	}
}

// noteCancel records who ended the session.
func (h *host) noteCancel(by string, grace time.Duration) {
	h.change(func(s *folder.State) {
		if s.Cancel == nil && s.EndedAt == nil {
			s.Cancel = &folder.Cancel{At: time.Now().UTC(), By: by, Grace: grace.String()}
		}
	})
}

// request is the request to end the session. It may come at any time, from anybody, more than once.
type request struct {
	mu    sync.Mutex
	kill  time.Time     // when the client is killed, zero before the first one
	made  chan struct{} // closed by the first one
	again chan struct{} // gets the others
}

func newRequest() *request {
	return &request{made: make(chan struct{}), again: make(chan struct{}, 1)}
}

// make asks for the end. A second request can only shorten the grace.
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

// isMade reports whether there was a request.
func (r *request) isMade() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.kill.IsZero()
}

// left is how much time the client has left.
func (r *request) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, time.Until(r.kill))
}

// next is closed by, or gets, the next request, whether or not there was one before.
func (r *request) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kill.IsZero() {
		return r.made
	}
	select {
	case <-r.again: // it asked for the end of the client
	default:
	}
	return r.again
}
