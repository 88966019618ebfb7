package upstream

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/fleet"
)

// An agent at a leaf node works for the stream of another domain. The leaf has JetStream, too,
// and keeps to itself what is published to a bucket of its own.
func TestAnAgentAtALeafNode(t *testing.T) {
	t.Parallel()
	port := fleet.FreePort()
	w := newWorld(t, fleet.Start(t, func(o *server.Options) {
		o.JetStreamDomain, o.LeafNode.Host, o.LeafNode.Port = "hub", "127.0.0.1", port
	}))
	hub := &url.URL{Scheme: "nats-leaf", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	leaf := fleet.Start(t, func(o *server.Options) {
		o.ServerName, o.JetStreamDomain = "leaf", "leaf"
		o.LeafNode.Remotes = []*server.RemoteLeafOpts{{URLs: []*url.URL{hub}}}
	})
	nc, _ := leaf.Connect(t)
	js, err := jetstream.NewWithAPIPrefix(nc, "$JS.hub.API")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return leaf.Server().NumLeafNodes() == 1 }, time.Minute, time.Millisecond)

	u := w.agentOn(js)
	c := w.pull(w.sent("job"), "one")
	s, err := u.Take(fleet.Context(t), c)
	require.NoError(t, err)
	c.Lease, c.Attempt = s.Lease, s.Attempt
	require.NoError(t, u.Keep(fleet.Context(t), c))
	long := strings.Repeat("long ", 200_000)
	fate, err := u.Answer(fleet.Context(t), c, done(long))
	require.NoError(t, err)
	assert.Equal(t, WasAnswered, fate.Outcome)
	text, err := Reply(fleet.Context(t), w.js, stream, w.answer("answer.job.one"))
	require.NoError(t, err)
	assert.Equal(t, long, text)
	assert.Zero(t, w.left())
	assert.Len(t, w.replied(), 1)
}
