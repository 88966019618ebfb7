package babysitter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// again is the pause before the CLI is asked again for a run whose lock it did not get.
const again = 250 * time.Millisecond

// writing has one call write to a run: under heartbeat's lock, with what killed writers
// left taken away.
func (c *CLI) writing(ctx context.Context, r run, do func() error) (err error) {
	lock, err := r.lock(ctx, c.wait())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := r.finishRepair(c); err != nil {
		return err
	}
	return c.unlocked(ctx, r, do)
}

// unlocked does it again while the run's own lock is held by others. The CLI waits ten
// seconds for it; but not where it loses a race, and not where the lock cannot be read.
func (c *CLI) unlocked(ctx context.Context, r run, do func() error) error {
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
		case <-time.After(again):
		}
	}
}
