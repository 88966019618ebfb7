package mcp

import (
	"encoding/json"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/price"
	"heartbeat/internal/task"
	"heartbeat/orchestrate/schema"
)

// What is written fits the schemas with all that it may have, such as a price.
func TestSchemasFit(t *testing.T) {
	cost := price.Price{Amount: price.Amount{Nanos: 12_000_000, Dollars: true, Tokens: price.Tokens{Input: 7}, Requests: 1}, Model: "m"}.Cost()
	raw := json.RawMessage(`{"a":[1,null]}`)
	verdict := &inbox.Verdict{Kind: inbox.VerdictDone, Text: "x"}
	for tool, out := range map[string]any{
		"result": fate{
			ID: "a", State: inbox.FoundAnswered,
			Result:     &inbox.Result{Metadata: map[string]json.RawMessage{"k": raw}, BackgroundTasks: raw, Check: &inbox.Check{}, Cost: cost},
			DeadLetter: &inbox.DeadLetter{Metadata: map[string]json.RawMessage{"k": raw}, Cost: cost},
		},
		"task_current": task.Current{Metadata: map[string]json.RawMessage{"k": raw}, DeliveredAt: time.Now(), Verdict: verdict, Progress: &inbox.Progress{}},
		"enqueue":      inbox.Receipt{NotBefore: new(time.Now()), Warnings: []string{"w"}},
		"cancel":       answer{Lines: []json.RawMessage{raw}, Truncated: true},
	} {
		role := producer
		if tool == "task_current" {
			role = agent
		}
		list, err := client(t, flags{inbox: newBox(t, ""), role: role}).ListTools(t.Context(), &sdk.ListToolsParams{})
		require.NoError(t, err)
		for _, one := range list.Tools {
			if one.Name != tool {
				continue
			}
			declared, err := json.Marshal(one.OutputSchema)
			require.NoError(t, err)
			text, err := json.Marshal(out)
			require.NoError(t, err)
			assert.NoError(t, schema.Check(declared, text), "%s: %s", tool, text)
		}
	}
}
