package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// What the wall clock says of the last progress does not end a session: it is set, and runs while the machine sleeps.
func TestStallsWhenTheClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{conclusion: conclusion{record: &record{}}}
		h.Stall, h.StallAction = 20*time.Minute, CancelStall
		assert.False(t, h.stalls(), "the client has not started")
		for _, jump := range []time.Duration{9 * time.Hour, -9 * time.Hour, 0} {
			at := time.Now().Add(-jump).UTC()
			h.state.LastProgressAt, h.state.StalledSince = &at, &at
			assert.False(t, h.stalls(), jump)
			time.Sleep(20*time.Minute - 1)
			assert.False(t, h.stalls(), jump)
			time.Sleep(time.Nanosecond)
			assert.True(t, h.stalls(), jump)
		}
	})
}
