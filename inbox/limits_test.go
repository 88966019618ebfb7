package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/budget"
)

// An entry whose limits cannot be understood is set aside with the reason, and the next
// one is delivered.
func TestInvalidLimits(t *testing.T) {
	box := newBox(t, "{\"prompt\":\"a\",\"id\":\"a\",\"limits\":{\"cost_usd\":-1}}\n{\"prompt\":\"b\",\"id\":\"b\",\"limits\":{\"cost_usd\":2.5}}\n")
	v, err := box.View()
	require.NoError(t, err)
	waits, err := v.Next(2)
	require.NoError(t, err)
	require.NoError(t, v.Close())
	assert.True(t, waits[0].InvalidLimits)
	assert.False(t, waits[1].InvalidLimits)

	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	e, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	assert.Equal(t, "b", e.ID)
	limits, err := e.Limits()
	require.NoError(t, err)
	assert.Equal(t, budget.Limits{Nanos: 2_500_000_000}, limits)
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())
	all := letters(t, box)
	require.Len(t, all, 1)
	assert.Equal(t, inbox.ReasonLimits, all[0].Reason)
	assert.Equal(t, `limits: cost_usd: "-1" is negative: give dollars above 0, such as 2.50`, all[0].Failure.Message)
	assert.ErrorContains(t, box.Requeueable(all[0]), "it would be set aside again: give it others")
}

func TestMessageWithLimits(t *testing.T) {
	box := newBox(t, "")
	_, err := box.Append(context.Background(), inbox.Message{ID: "a", Text: "x", Limits: budget.Limits{Nanos: 2_500_000_000, Tokens: 400_000, Time: 30 * time.Minute}}, 0)
	require.NoError(t, err)
	assert.Contains(t, read(t, box.Path()), `"limits":{"cost_usd":2.5,"tokens":400000,"time":"30m0s"}}`)
	assert.ErrorContains(t, inbox.Message{Text: "x", Metadata: map[string]any{"limits": 1}}.Check(), `metadata cannot be named "limits"`)
}
