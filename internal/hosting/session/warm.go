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

// drain is a session's warm end: no entry is delivered any more, and the one in flight has
// some time to be answered.
type drain struct {
	begun chan struct{} // closed with the first request
	asked atomic.Bool

	mu  sync.Mutex  // of who asks
	end *time.Timer // when the client is ended all the same
}

// cancelWarm has nothing more delivered. Without an entry in flight the client ends by
// itself; one that does not within most is cancelled.
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
		h.cancel(byWarm, grace)
		if h.PTY {
			h.endTerminal()
		}
	})
	return nil
}

// undrain calls the end of a warm cancel off: the client has ended.
func (h *host) undrain() {
	h.drained.mu.Lock()
	defer h.drained.mu.Unlock()
	if h.drained.end != nil {
		h.drained.end.Stop()
	}
}

// noteCancel notes who ended the session.
func (h *host) noteCancel(by string, grace time.Duration) {
	h.change(func(s *folder.State) {
		if s.Cancel == nil && s.EndedAt == nil {
			s.Cancel = &folder.Cancel{At: time.Now().UTC(), By: by, Grace: grace.String()}
		}
	})
}
