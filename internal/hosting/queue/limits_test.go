package queue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/price"
	recovery "heartbeat/recover"
)

// limited is a queue whose session may spend so much.
func limited(t *testing.T, l price.Plan, entries ...string) *rig {
	r := newRig(t, entries...)
	r.o.Settings.Limits = l
	return r
}

// asks is a turn up to its first answer, which took 1,100 tokens.
func (c *standIn) asks(text string) {
	c.t.Helper()
	c.start()
	c.submit(text)
	c.wrotePrompt(text)
	c.wrote(map[string]any{"type": "assistant", "message": map[string]any{
		"id": "m1", "role": "assistant", "model": "m", "usage": map[string]any{"input_tokens": 1000, "output_tokens": 100},
		"content": []any{map[string]any{"type": "tool_use", "id": "t", "name": "Bash", "input": map[string]any{}}},
	}})
}

// An entry whose earlier deliveries have reached its limit is not delivered again.
func TestRefusedOverItsLimit(t *testing.T) {
	for name, look := range map[string]func(r *rig){
		"by the next round": func(r *rig) {
			_, err := r.Command(nil, "")
			require.NoError(r.t, err)
			_, ok, err := r.First(r.t.Context())
			require.NoError(r.t, err)
			assert.False(r.t, ok)
		},
		"between two rounds": func(r *rig) {
			n, err := r.Waiting(r.t.Context())
			require.NoError(r.t, err)
			assert.Equal(r.t, Next{}, n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := limited(t, price.Plan{Entry: price.Limits{Tokens: 1000}}, "A")
			r.o.Settings.Policy = recovery.Retry
			c, p := r.round("")
			c.asks(p)
			r.settle(seen)
			require.Equal(t, queued, r.fates())
			look(r)
			assert.Equal(t, dead, r.fates())
			f, err := r.Fates(nil)
			require.NoError(t, err)
			assert.Equal(t, "over_budget: it took 1100 of 1000 tokens", f.Each[0].Why)
		})
	}
}

// Over the day's limit no client is started, and delivery is paused with the figures.
func TestDayLimit(t *testing.T) {
	r := limited(t, price.Plan{}, "A")
	c, p := r.round("")
	c.asks(p)
	c.stop("A done", false)
	r.settle(seen)
	require.Equal(t, answered, r.fates())
	_, _, err := r.Put(t.Context(), "", "B")
	require.NoError(t, err)
	r.o.Settings.Limits.Day.Tokens = 1000
	_, err = r.Command(nil, "")
	require.NoError(t, err)
	_, ok, err := r.First(t.Context())
	require.NoError(t, err)
	assert.False(t, ok)
	n, err := r.Waiting(t.Context())
	require.NoError(t, err)
	assert.True(t, n.Waits && n.Any())
	require.NotNil(t, n.Paused)
	assert.Contains(t, n.Paused.Reason, "today cost 1100 of 1000 tokens")
	assert.NotNil(t, n.Paused.Until)
}

// A turn that its hook has stopped ends the round at a limit, and so does a session that
// has spent its own.
func TestRoundEndedAtALimit(t *testing.T) {
	t.Run("of the entry", func(t *testing.T) {
		r := limited(t, price.Plan{Entry: price.Limits{Tokens: 1000}}, "A", "B")
		c, p := r.round("")
		c.asks(p)
		c.fire("PostToolBatch", nil)
		r.settle(seen)
		assert.Equal(t, []int{0, 1, 0, 1}, r.fates())
		why, err := r.Limit(t.Context())
		require.NoError(t, err)
		assert.Regexp(t, "^entry .* was stopped: it took 1100 of 1000 tokens$", why)
		next, p := r.round("")
		assert.NotEqual(t, c.session, next.session)
		next.start()
		next.submit(p)
		next.stop("B done", false)
		r.settle(seen)
		why, err = r.Limit(t.Context())
		require.NoError(t, err)
		assert.Empty(t, why)
	})
}
