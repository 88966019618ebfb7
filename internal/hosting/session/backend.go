package session

import (
	"context"
	"iter"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
)

// backend is the session as its socket shows it.
type backend struct{ h *host }

func (b backend) Messages(ctx context.Context, from int64) iter.Seq2[attach.Message, error] {
	return func(yield func(attach.Message, error) bool) {
		for m, err := range b.h.store.Read(ctx, from) {
			if !yield(attach.Message{N: m.N, At: m.At, Type: m.Type, Raw: m.Content}, err) {
				return
			}
		}
	}
}

func (b backend) Status() any {
	s := b.h.snapshot()
	b.h.watchLive(&s)
	return s
}

func (b backend) Cancel(grace time.Duration) error {
	if b.h.snapshot().EndedAt != nil {
		return attach.ErrEnded
	}
	if grace < 0 {
		grace = b.h.Grace
	}
	b.h.cancel("heartbeat-host cancel", grace)
	if b.h.PTY {
		b.h.endTerminal()
	}
	return nil
}

func (b backend) Send(ctx context.Context, m inbox.Message) (inbox.Receipt, error) {
	return b.h.send(ctx, m)
}

// watchLive fills in what the state file has only now and then.
func (h *host) watchLive(s *folder.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tallied(s, &h.tally)
	h.toolsUsed(s)
	if h.store != nil {
		health := h.store.Health()
		s.Messages, s.Lost, s.Store = health.Last, health.Lost, health.Trouble
	}
}
