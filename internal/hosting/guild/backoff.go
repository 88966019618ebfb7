package guild

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// persist makes attempts until one succeeds, one fails for good, the patience is used
// up, or ctx ends. It waits 1, 2, 4, 8, 8 … s between them; the last wait is cut short
// to end with the patience, and a last attempt follows it. An attempt that is under way
// when the patience ends is not cut short.
func (c *Client) persist(ctx context.Context, patience time.Duration, attempt func() (again bool, err error)) error {
	waits := &backoff.ExponentialBackOff{InitialInterval: time.Second, Multiplier: 2, MaxInterval: 8 * time.Second}
	waits.Reset()
	start := c.clock.Now()
	for {
		again, err := attempt()
		if err == nil || !again {
			return err
		}
		passed := c.clock.Now().Sub(start)
		if stopped := context.Cause(ctx); stopped != nil {
			return &Unreachable{For: passed, Last: err, Stopped: stopped}
		}
		if c.once || passed >= patience {
			return &Unreachable{For: passed, Last: err}
		}
		if stopped := c.clock.Sleep(ctx, min(waits.NextBackOff(), patience-passed)); stopped != nil {
			return &Unreachable{For: c.clock.Now().Sub(start), Last: err, Stopped: stopped}
		}
	}
}
