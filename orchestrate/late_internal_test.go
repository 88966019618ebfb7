package orchestrate

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	recovery "heartbeat/recover"
)

// The time that a task may take passes neither while the machine sleeps nor when the clock is set.
func TestLateByTheTimeOfWork(t *testing.T) {
	for name, c := range map[string]struct {
		ago, worked time.Duration
		late        bool
	}{
		"in time":                {5 * time.Second, 5 * time.Second, false},
		"over":                   {31 * time.Second, 31 * time.Second, true},
		"the machine slept":      {8 * time.Hour, 5 * time.Second, false},
		"the clock was set back": {-8 * time.Hour, 31 * time.Second, true},
	} {
		e := recovery.Evidence{
			Process: inbox.ProcessOf(os.Getpid()), SinceBoot: machine.SinceBoot(), Awake: machine.Awake() - int64(c.worked),
		}
		d := &inbox.Delivery{DeliveredAt: time.Now().Add(-c.ago), Evidence: e.Encode()}
		d.RawLine.Text = `{"prompt":"x","id":"i","time_limit_ms":30000}`
		assert.Equal(t, c.late, lateFailure(d) != nil, name)
		d.RawLine.Text = `{"prompt":"x","id":"i","time_limit_ms":1e300}`
		assert.Nil(t, lateFailure(d), "%s, with a limit that no duration holds", name)
	}
}
