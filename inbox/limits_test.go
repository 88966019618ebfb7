package inbox_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func TestMessageWithLimits(t *testing.T) {
	box := newBox(t, "")
	_, err := box.Append(context.Background(), inbox.Message{ID: "a", Text: "x", Limits: json.RawMessage(`{"cost_usd":2.5}`)}, 0)
	require.NoError(t, err)
	assert.Contains(t, read(t, box.Path()), `"limits":{"cost_usd":2.5}}`)
	_, err = box.Append(context.Background(), inbox.Message{Text: "x", Limits: json.RawMessage(`{`)}, 0)
	require.ErrorContains(t, err, "the limits are not JSON")
	assert.ErrorContains(t, inbox.Message{Text: "x", Metadata: map[string]any{"limits": 1}}.Check(), `metadata cannot be named "limits"`)
}
