package inbox_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
)

// endsWith is a context that ends when somebody begins to wait for its end. It calls do just before.
type endsWith struct {
	context.Context
	end context.CancelFunc
	do  func()
}

func (c endsWith) Done() <-chan struct{} {
	if c.Context.Err() == nil {
		c.do()
		c.end()
	}
	return c.Context.Done()
}

// Await reports an answer that arrives as the wait ends: both events are then ready, and a select
// takes either of them.
func TestAwaitLooksOnceMoreAtTheEnd(t *testing.T) {
	t.Parallel()
	for range 20 {
		box := newBox(t, "")
		receipt, err := box.Append(t.Context(), inbox.Message{Text: "one"}, 0)
		require.NoError(t, err)
		under, end := context.WithCancel(t.Context())
		outcome, err := outcomes.Await(endsWith{under, end, func() {
			turn(t, box)
			acknowledge(t, box, "done")
		}}, box,

			receipt, never)

		require.NoError(t, err)
		require.NotNil(t, outcome.Result)
		assert.Equal(t, "done", outcome.Result.Reply)
	}
}
