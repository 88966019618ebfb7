package guild

import (
	"context"
	"sync"
	"time"
)

// Clock passes as fast as it is slept: back-off takes no time with it.
type Clock struct {
	// Woken, if set, is called after each sleep, with their count.
	Woken func(n int)

	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

// Now is the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep passes the time at once, and returns the cause of a context that has ended.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	n := len(c.slept)
	c.mu.Unlock()
	if c.Woken != nil {
		c.Woken(n)
	}
	return context.Cause(ctx)
}

// Seconds are the sleeps so far, in whole seconds.
func (c *Clock) Seconds() (all []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.slept {
		all = append(all, int(d/time.Second))
	}
	return all
}
