package command

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/orchestrate"
)

// TestStandingIsOneLine holds that a run's directory, which others may write to,
// cannot put a line of its own beside ours.
func TestStandingIsOneLine(t *testing.T) {
	said := standingSentence(orchestrate.Standing{
		Run:  "r1\nrun r2: completed",
		Held: []orchestrate.Held{{Effect: "e1\nrun r3: completed", Question: "really?\r\x1b[2K"}},
	})
	assert.NotRegexp(t, `[\n\r\x1b]`, said)
	assert.Contains(t, said, "run r1 run r2: completed")
}
