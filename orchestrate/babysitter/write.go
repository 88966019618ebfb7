package babysitter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// retryPause is the pause before the CLI is called again after it did not get the run's
// lock.
const retryPause = 250 * time.Millisecond

// writing calls do, which writes to a run, while this process holds heartbeat's lock. It
// first removes what killed writers left.
func (c *CLI) writing(ctx context.Context, r run, do func() error) (err error) {
	lock, err := r.lock(ctx, c.wait())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := r.finishRepair(c); err != nil {
		return err
	}
	return c.retrying(ctx, r, do)
}

// retrying repeats do while other processes hold the CLI's own lock. The CLI waits ten
// seconds for the lock, but not if it loses a race, or if the lock cannot be read.
func (c *CLI) retrying(ctx context.Context, r run, do func() error) error {
	for late := time.Now().Add(c.wait()); ; {
		if err := errors.Join(r.clearLock(ctx, c), r.sweepJournal(c)); err != nil {
			return err
		}
		err := do()
		if !errors.Is(err, ErrLocked) && !(err != nil && r.unreadableLock()) {
			return err
		}
		if !time.Now().Before(late) {
			return &problem{ErrLocked, fmt.Sprintf("%v, also after %v: wait for it, or end it", err, c.wait()), err}
		}
		select {
		case <-ctx.Done():
			return givenUp(ctx, "work on the run "+r.dir)
		case <-time.After(retryPause):
		}
	}
}
