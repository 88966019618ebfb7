package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// keeper keeps the server from handing out held messages. It runs beside the loop, whose calls may take long.
type keeper struct {
	every   atomic.Int64 // nanoseconds
	stalled atomic.Bool  // nothing has moved for --stall
	moved   atomic.Int64 // when something last moved, in nanoseconds since 1970; 0 if nothing stands still
	stuck   string       // the entry in flight when something last stood still, or ""
	late    atomic.Bool  // a message was not kept for an AckWait, and is kept again
	change  chan struct{}
}

// startKeeping keeps what is held until ctx ends, and then closes the returned channel.
func (a *Agent) startKeeping(ctx context.Context) <-chan struct{} {
	a.keep.change = make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		begun := wallClock()
		kept := map[string]keeping{}
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(a.keep.every.Load())):
			}
			// Only movement ends a stall, so check for it even if everything was given back.
			if a.ledger.Len() > 0 || a.keep.stalled.Load() {
				kept = a.keepAll(ctx, kept, begun)
			}
		}
	}()
	return done
}

// keeping is how a message was last kept.
type keeping struct {
	at   time.Time // when, by the wall clock, which runs while a machine sleeps
	lost bool      // since then it failed, which was said
}

func wallClock() time.Time { return time.Now().Round(0) }

// keepAll keeps all held messages at once. One by one, a slow server would hand out the last before it is kept.
func (a *Agent) keepAll(ctx context.Context, before map[string]keeping, begun time.Time) map[string]keeping {
	stalled := a.checkStall(ctx)
	kept := map[string]keeping{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, c := range a.ledger.All() {
		last, seen := before[c.Entry]
		if !seen {
			last.at = c.At.Round(0)
			if last.at.Before(begun) {
				last.at = begun
			}
		}
		all.Go(func() {
			if c.GivingBack == nil && !stalled {
				last = a.keepOne(ctx, c, last)
			}
			mu.Lock()
			defer mu.Unlock()
			kept[c.Entry] = last
		})
	}
	all.Wait()
	return kept
}

// keepOne keeps a message. One that was not kept for an AckWait may be with another agent, so it wakes the loop.
func (a *Agent) keepOne(ctx context.Context, c upstream.Claim, last keeping) keeping {
	if err := a.up.Keep(ctx, c); err != nil {
		if ctx.Err() == nil && !last.lost && a.conn.Connected() && !errors.Is(err, nats.ErrDisconnected) {
			a.say(err.Error())
			last.lost = true
		}
		return last
	}
	now := wallClock()
	if now.Sub(last.at) > 3*time.Duration(a.keep.every.Load()) {
		a.keep.late.Store(true)
		a.wake()
	}
	return keeping{at: now}
}

// checkStall reports whether nothing in the inbox has moved for --stall. When that changes, it says so about the message
// whose entry is in flight, and wakes the loop, which gives back what waits behind that entry.
func (a *Agent) checkStall(ctx context.Context) bool {
	facts := see.Glance(ctx, a.box, nil)
	since := see.StandsStill(facts).Since
	a.keep.moved.Store(0)
	if !since.IsZero() {
		a.keep.moved.Store(since.UnixNano())
	}
	stalled := a.o.Stall > 0 && !since.IsZero() && facts.Now.Sub(since) >= a.o.Stall
	was, stuck := a.keep.stalled.Swap(stalled), a.keep.stuck
	if d := facts.InFlight; stalled && d != nil {
		a.keep.stuck = d.ID()
	} else if stalled {
		a.keep.stuck = ""
	}
	if was == stalled && stuck == a.keep.stuck {
		return stalled
	}
	switch c, held := a.ledger.Get(a.keep.stuck); {
	case held && stalled:
		a.say(fmt.Sprintf("message %s is no longer kept from other agents: nothing has moved for %s; its entry goes on here", words.Brief(c.ID), words.Took(facts.Now.Sub(since))))
	case held:
		a.say(fmt.Sprintf("message %s is kept from other agents again: something moves", words.Brief(c.ID)))
	}
	a.wake()
	return stalled
}

// wake makes the loop take a step.
func (a *Agent) wake() {
	select {
	case a.keep.change <- struct{}{}:
	default:
	}
}
