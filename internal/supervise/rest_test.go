package supervise

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// What is waited for is looked at soon after the machine wakes up, though a timer stood still
// meanwhile: no rest is longer than that.
func TestALongRestIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &run{stop: windDown{asked: ctx}}
		rests := func(rest time.Duration) time.Duration {
			began := time.Now()
			r.restFor(rest, nil)
			return time.Since(began)
		}
		assert.Equal(t, time.Second, rests(time.Second))
		assert.Equal(t, lookAgain, rests(4*time.Hour))
		cancel()
		assert.Zero(t, rests(time.Hour), "a signal ends it")
	})
}
