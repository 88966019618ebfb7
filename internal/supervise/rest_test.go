package supervise

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

// What is waited for is looked at soon after the machine wakes up, though a timer stood still
// meanwhile: no rest is longer than that.
func TestALongRestIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &run{stop: windDown{asked: ctx}, Options: Options{Wiring: Wiring{SettingsDir: "elsewhere"}}} // without a guardian
		rests := func(rest time.Duration) time.Duration {
			began := time.Now()
			r.restFor(rest, nil)
			return time.Since(began)
		}
		assert.Equal(t, time.Second, rests(time.Second))
		assert.Equal(t, recheckEvery, rests(4*time.Hour))
		cancel()
		assert.Zero(t, rests(time.Hour), "a signal ends it")
	})
}

// At the limit of a day the first turn of another session would cost more. A session that persists begins during any
// other pause, as it sits through that.
func TestNoSessionBeginsOverTheLimitOfADay(t *testing.T) {
	midnight := time.Now().Add(time.Hour)
	for reason, rests := range map[string]bool{"3.10 of 3 dollars " + inbox.LimitOfDay: true, "deploy": false} {
		st := state{Hold: recovery.Hold{Paused: &inbox.Pause{Reason: reason, Until: &midnight}}}
		assert.Equal(t, rests, (&run{Options: Options{Mode: Persist}}).rest(st) > 0, reason)
	}
}

// Nor does one that persists begin while the API limits, once one has ended so: its first turn would end likewise. The
// first session waits for the end itself.
func TestNoSessionFollowsOneThatALimitEnded(t *testing.T) {
	st := state{Hold: recovery.Hold{Backoff: &inbox.Backoff{Until: time.Now().Add(time.Hour)}}}
	for _, early := range []bool{true, false} {
		r := &run{Options: Options{Mode: Persist}}
		r.pace.early = early
		assert.Equal(t, early, r.rest(st) > 0)
	}
}
