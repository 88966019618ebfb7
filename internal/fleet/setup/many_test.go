package setup

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

// More agents than a server's own limits would let: 600 wait at once, and hold 1,200
// messages.
func TestManyAgents(t *testing.T) {
	const agents, slots = 600, 2
	nc, js := fleet.Start(t).Connect(t)
	ctx := fleet.Context(t)
	apply(t, js, wanted())
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	require.NoError(t, err)
	pull := "$JS.API.CONSUMER.MSG.NEXT.WORK." + message.Consumer("work.>")
	for range agents {
		require.NoError(t, nc.PublishRequest(pull, inbox, []byte(`{"batch":2,"expires":60000000000}`)))
	}
	c, err := js.Consumer(ctx, "WORK", message.Consumer("work.>"))
	require.NoError(t, err)
	require.EventuallyWithT(t, func(t *assert.CollectT) { // the server takes requests up by and by
		info, err := c.Info(ctx)
		require.NoError(t, err)
		assert.Equal(t, agents, info.NumWaiting)
	}, 5*time.Minute, 10*time.Millisecond)

	for range agents * slots {
		_, err := js.PublishAsync("work.a", nil)
		require.NoError(t, err)
	}
	for range agents * slots {
		m, err := answers.NextMsg(time.Minute)
		require.NoError(t, err)
		require.Empty(t, m.Header.Get("Status"), "%v", nats.Header(m.Header))
	}
	info, err := c.Info(ctx)
	require.NoError(t, err)
	assert.Equal(t, agents*slots, info.NumAckPending)
}
