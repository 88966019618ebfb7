package guild

import (
	"context"
	"sync"
	"time"
)

// BeatEvery is how often a guild expects a beat.
const BeatEvery = 30 * time.Second

// Beats tells a guild at intervals that the session lives. A beat that fails is
// counted and dropped: the next one says the same.
type Beats struct {
	done chan struct{}

	mu    sync.Mutex
	count BeatCount
}

// BeatCount is how the beats went so far.
type BeatCount struct {
	Sent   int    // beats that the guild took
	Missed int    // beats that it did not take
	Last   error  // of the last beat; nil if the guild took it
	Status string // what the guild last said of the session; empty while it says nothing
}

// StartBeats sends the first beat after every (0 is [BeatEvery]), and another as long
// after the end of each one, until ctx ends. Start it when the running report has
// settled.
func (c *Client) StartBeats(ctx context.Context, every time.Duration) *Beats {
	if every <= 0 {
		every = BeatEvery
	}
	b := &Beats{done: make(chan struct{})}
	go func() {
		defer close(b.done)
		for c.clock.Sleep(ctx, every) == nil {
			said, err := c.Beat(ctx)
			if ctx.Err() != nil {
				return // a beat that was cut off says nothing of the guild
			}
			b.add(said, err)
		}
	}()
	return b
}

func (b *Beats) add(said Answer, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count.Last = err
	if err != nil {
		b.count.Missed++
		return
	}
	b.count.Sent++
	b.count.Status = said.Status
}

// Count is how the beats went so far.
func (b *Beats) Count() BeatCount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// Done is closed once ctx has ended and no beat is under way.
func (b *Beats) Done() <-chan struct{} { return b.done }
