package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"

	"heartbeat/internal/fleet/upstream"
)

// TestTheServerTakesLessThanBefore lowers max_payload in the midst of a turn. The server tells nobody: it ends the
// connection of whoever publishes more, and the client gives up for ever.
func TestTheServerTakesLessThanBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	w.hold()
	a := w.start("one", nil)
	w.sendText("a", strings.Repeat("x", 100<<10))
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	w.server.Reload(t, func(o *server.Options) { o.MaxPayload = 32 << 10 })
	w.open()
	w.settled(a, "a")
	assert.Equal(t, upstream.WasAnswered, w.known("a").Outcome)
	assert.Equal(t, 1, w.replied("a"))
	assert.Contains(t, a.said(), "Maximum Payload Violation: it is tried again for ever")
	assert.NotContains(t, a.said(), "got a signal", "its launcher goes on")
	w.send("b")
	w.settled(a, "b")
	a.term()
	assert.Equal(t, 143, a.ended())
}

// TestItDrainsWithANewConnection has an agent drain while the server ends its connection for good.
func TestItDrainsWithANewConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	w.hold()
	a := w.start("one", nil, "--drain-on", "TERM")
	w.sendText("a", strings.Repeat("x", 100<<10))
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	a.term()
	w.eventually("it drains", func() bool { return strings.Contains(a.said(), "draining") }, a)
	w.server.Reload(t, func(o *server.Options) { o.MaxPayload = 32 << 10 })
	w.open()
	assert.Zero(t, a.ended(), a.said())
	assert.Equal(t, 1, w.replied("a"), a.said())
	assert.Contains(t, a.said(), "drained: nothing is held")
}
