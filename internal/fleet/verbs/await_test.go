package verbs

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// A server of a cluster may tell that a message has left the stream before the one that is asked for results has its
// decision.
func TestADecisionThatIsLate(t *testing.T) {
	w := there(t)
	w.send(t, "work.a")
	require.NoError(t, w.take(fleet.Context(t), "one", "m-1"))
	s, err := w.js.Stream(fleet.Context(t), "WORK")
	require.NoError(t, err)
	require.NoError(t, s.DeleteMsg(fleet.Context(t), 1))
	up, err := upstream.Open(fleet.Context(t), w.js, "WORK")
	require.NoError(t, err)
	looks, told := 0, make(chan error, 1)
	_, err = w.nc.Subscribe("$JS.API.DIRECT.GET.KV_WORK-results.$KV.WORK-results."+message.Key("m-1"), func(*nats.Msg) {
		if looks++; looks == 2 { // before it sends, and as it waits
			_, err := up.Answer(fleet.Context(t), w.held["m-1"], upstream.Answer{Reply: "done"})
			told <- err
		}
	})
	require.NoError(t, err)
	status, out, said := run(t, "send", "--server", w.server.URL(), "--subject", "work.a", "--id", "m-1", "--wait", "text")
	require.Zero(t, status, said)
	assert.Equal(t, "done\n", out)
	require.NoError(t, <-told)
}
