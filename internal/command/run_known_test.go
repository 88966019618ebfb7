package command

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/price"
	"heartbeat/orchestrate"
	runs "heartbeat/orchestrate/run"
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

// A process that catches more than its tasks' failures returns before they have results.
func TestStandingOfACompletedRunWithPendingEffects(t *testing.T) {
	now := orchestrate.Standing{Run: "r1", Status: runs.Completed, Pending: map[string]int{"agent": 2}}
	assert.Equal(t, "run r1: completed, 2 agent unanswered, 0 iterations", standingSentence(now))
	now.Status = runs.Waiting
	assert.Equal(t, "run r1: waiting for 2 agent, 0 iterations", standingSentence(now))
}

func TestTheCostOfARunAsJSON(t *testing.T) {
	cost := price.Price{Amount: price.Amount{Nanos: 12_000_000, Dollars: true, Tokens: price.Tokens{Input: 7}, Requests: 1}, Model: "m"}
	text, err := json.Marshal(shownRun{Cost: &cost})
	require.NoError(t, err)
	assert.Contains(t, string(text), `"cost":{"cost_usd":0.012,"tokens":{"input":7,`)
}
