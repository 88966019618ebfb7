package guild

import (
	"context"
	"sync"
	"time"
)

// testClock passes as fast as it is slept.
type testClock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
	woken func(n int) // called after each sleep, with their count
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	n := len(c.slept)
	c.mu.Unlock()
	if c.woken != nil {
		c.woken(n)
	}
	return context.Cause(ctx)
}
