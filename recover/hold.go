package recover

import (
	"math/rand/v2"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/claude/limit"
)

// HoldDelivery stops delivery after an error that ended a turn: for a while, or until
// somebody resumes if only a person can fix it. ours says that the turn was an entry's;
// any other turn changes nothing while delivery is already held. The caller commits.
func HoldDelivery(tx *inbox.Tx, f *inbox.Failure, ours bool) error {
	remedy := claude.RemedyFor(f.Error, f.Message)
	if remedy.Person {
		_, err := tx.Pause(f.String(), nil)
		return err
	}
	held, err := tx.Backoff()
	if err != nil {
		return err
	}
	streak, err := tx.Streak()
	if err != nil {
		return err
	}
	if ours || streak == 0 {
		streak++
	}
	length, named := remedy.Backoff(streak, rand.Float64()), false
	now := time.Now()
	if reset, ok := limit.End(f.Message, now); ok && !remedy.Counts {
		length, named = untilReset(reset.Sub(now)), true
	}
	if held != nil && !named && !ours {
		return nil
	}
	_, err = tx.BackOff(length, streak, named, f)
	return err
}

// maxResetJitter bounds the delay after the end of a limit, so that not everybody who
// waited for it tries at once.
const maxResetJitter = 30 * time.Second

// untilReset is how long to wait for the end of a limit.
func untilReset(wait time.Duration) time.Duration {
	wait = max(wait, 0)
	return wait + time.Second + time.Duration(rand.Float64()*float64(min(wait/5, maxResetJitter)))
}

// The names of a hook's own errors in the record of a session.
const (
	CannotWake = "rewake" // the session ends with its turn
	HookError  = "hook"   // an entry could not be handed over; the hook tries again
)
