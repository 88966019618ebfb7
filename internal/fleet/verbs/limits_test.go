package verbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

// TestLimitsOfSomebody has a person give a consumer, and then the stream, limits that keep messages from agents.
func TestLimitsOfSomebody(t *testing.T) {
	w, ctx := there(t), fleet.Context(t)
	con, err := w.js.Consumer(ctx, "WORK", message.Consumer("work.>"))
	require.NoError(t, err)
	limited := con.CachedInfo().Config
	limited.MaxDeliver, limited.AckWait = 1, 100*time.Millisecond
	con, err = w.js.UpdateConsumer(ctx, "WORK", limited)
	require.NoError(t, err)
	w.do(t, w.says(ctx, "one", nil))
	w.send(t, "work.a")
	_, err = con.Next()
	require.NoError(t, err)
	const says = "1 message waits: the consumer hb_work=2E=3E has handed out some as often as it was allowed to: " +
		"nats consumer rm WORK hb_work=2E=3E removes it, and heartbeat-nats setup --stream WORK makes one that hands them out again\n"
	passed := func() bool {
		status, out, said := run(t, "status", "--server", w.server.URL())
		require.Zero(t, status, said)
		return len(out) > len(says) && out[len(out)-len(says):] == says
	}
	require.Eventually(t, passed, 5*time.Minute, 20*time.Millisecond)
	status, _, said := run(t, "setup", "--server", w.server.URL())
	require.Zero(t, status, said)
	assert.True(t, passed(), "a server does not take that back")
	require.NoError(t, w.js.DeleteConsumer(ctx, "WORK", con.CachedInfo().Name))
	status, _, said = run(t, "setup", "--server", w.server.URL())
	require.Zero(t, status, said)
	con, err = w.js.Consumer(ctx, "WORK", message.Consumer("work.>"))
	require.NoError(t, err)
	m, err := con.Next()
	require.NoError(t, err)
	require.NoError(t, m.DoubleAck(ctx))

	s, err := w.js.Stream(ctx, "WORK")
	require.NoError(t, err)
	drops := s.CachedInfo().Config
	drops.MaxMsgsPerSubject = 1
	_, err = w.js.UpdateStream(ctx, drops)
	require.NoError(t, err)
	status, _, said = run(t, "status", "--server", w.server.URL())
	assert.Zero(t, status)
	assert.Contains(t, said, "stream WORK: it keeps only 1 message of a subject and drops older ones, answered or not")
}
