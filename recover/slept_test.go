package recover_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	recovery "heartbeat/recover"
)

// Time that the machine sleeps does not count as work: an entry that was delivered in the evening
// still has its limit in the morning.
func TestSleepIsNoWork(t *testing.T) {
	const slept, worked = 8 * time.Hour, 5 * time.Minute
	delivered := func(e recovery.Evidence) *inbox.Delivery {
		e.Boot, e.SinceBoot = machine.BootID(), machine.SinceBoot()-int64(slept+worked)
		e.Namespace, e.PID, e.ProcessStart = machine.PIDNamespace(), os.Getpid(), machine.ProcessStart(os.Getpid())
		return &inbox.Delivery{DeliveredAt: time.Now().Add(-slept - worked), Evidence: e.Encode()}
	}
	d := delivered(recovery.Evidence{Awake: machine.Awake() - int64(worked)})
	assert.InDelta(t, worked, recovery.Took(d), float64(time.Minute))
	d.Took = time.Hour // of earlier deliveries
	assert.InDelta(t, worked+time.Hour, recovery.Took(d), float64(time.Minute))
	old := delivered(recovery.Evidence{})
	assert.InDelta(t, slept+worked, recovery.Took(old), float64(time.Minute), "an earlier release's has that clock alone")

	held := recovery.TaskWait{}.Wait(nil, "")
	assert.LessOrEqual(t, held.HeldSince, machine.Awake())
	held.HeldSince = machine.Awake() - int64(worked)
	assert.False(t, held.Over(30*time.Minute))
	assert.True(t, held.Over(worked))
}
