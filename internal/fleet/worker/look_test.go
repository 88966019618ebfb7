package worker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
)

// The server is not asked who holds a message whose turn goes on whatever it says.
func TestATurnThatGoesOnIsNotLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	w.hold()
	a := w.start("one", nil)
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	var kept, asked atomic.Int64
	_, err := w.nc.Subscribe("$JS.ACK.>", func(*nats.Msg) { kept.Add(1) })
	require.NoError(t, err)
	w.eventually("that it is kept", func() bool { return kept.Load() > 1 }, a)
	bucket := message.Bucket("WORK")
	_, err = w.nc.Subscribe("$JS.API.DIRECT.GET.KV_"+bucket+".$KV."+bucket+".>", func(*nats.Msg) { asked.Add(1) })
	require.NoError(t, err)
	w.eventually("that it is kept for longer than AckWait", func() bool { return kept.Load() > 6 }, a)
	assert.Zero(t, asked.Load())
	w.open()
	w.settled(a, "a")
	assert.Equal(t, []string{"a"}, w.turns())
}
