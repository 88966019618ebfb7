package upstream

import (
	"context"
	"fmt"
	"time"

	"heartbeat/internal/fleet/message"
)

// GiveBack returns the claim's message to the stream, which hands it out again after delay. It does not count as an
// attempt. left says why the stream need not be told, as in [Fate].
func (u *Upstream) GiveBack(ctx context.Context, c Claim, delay time.Duration) (left string, err error) {
	if left, err = u.giveBack(ctx, c, delay); err != nil {
		err = fmt.Errorf("give message %s back to the stream %s: %w; it will be tried again, and comes back without it once its time is over", c.name(), u.stream, err)
	}
	return left, err
}

func (u *Upstream) giveBack(ctx context.Context, c Claim, delay time.Duration) (string, error) {
	if with, err := u.free(ctx, c); err != nil || with != "" {
		return with, err
	}
	if err := u.done(stepFreed); err != nil {
		return "", err
	}
	say := ackNak
	if delay > 0 {
		say = fmt.Sprintf(`%s {"delay": %d}`, ackNak, delay.Nanoseconds())
	}
	left, err := u.acknowledge(ctx, c, say)
	if err != nil {
		return "", err
	}
	return left, u.done(stepSettled)
}

// free releases the lease for whoever gets the message next. with says that somebody else has it: acknowledging
// this copy would take the message from them.
func (u *Upstream) free(ctx context.Context, c Claim) (with string, err error) {
	for range tries {
		if c.Lease == 0 {
			return "", nil
		}
		next := leaseOf(c)
		next.Attempt--
		if _, err = u.put(ctx, message.LeaseKey(c.ID), next, c.Lease); !IsOlder(err) {
			break
		}
		switch is, wrong := u.stand(ctx, c, false); {
		case wrong != nil:
			return "", wrong
		case is.Known != nil:
			return "it was settled meanwhile", nil
		case is.With != "":
			return "it is with agent " + is.With + " by now", nil
		default:
			c.Lease = is.Lease // 0 if an earlier life freed it
		}
	}
	if err != nil {
		return "", fmt.Errorf("write its lease to the bucket %s: %w", u.Results.Bucket(), err)
	}
	return "", nil
}
