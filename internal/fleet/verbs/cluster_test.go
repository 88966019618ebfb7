package verbs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// With --replicas 3 a cluster loses nothing when the server ends that leads the stream.
func TestACluster(t *testing.T) {
	c := fleet.StartCluster(t, 3)
	at := func(args ...string) string {
		t.Helper()
		status, out, said := run(t, append(args, "--server", c.URL())...)
		require.Zero(t, status, "%q: %s", args, said)
		return out
	}
	at("setup", "--replicas", "3", "--ack-wait", "3s") // what was on its way comes again after that
	nc, js := fleet.Connect(t, c.URL())
	ctx := fleet.Context(t)
	for _, name := range []string{"WORK", "WORK-dead", "KV_WORK-results", "KV_WORK-agents", "OBJ_WORK-replies"} {
		s, err := js.Stream(ctx, name)
		require.NoError(t, err)
		assert.Equal(t, 3, s.CachedInfo().Config.Replicas, name)
	}
	pull, err := js.Consumer(ctx, "WORK", message.Consumer("work.>"))
	require.NoError(t, err)
	require.Len(t, pull.CachedInfo().Cluster.Replicas, 2, "that of the consumer are the stream's")

	w := &world{nil, nc, js, map[string]upstream.Claim{}}
	const count = 6
	for i := range count {
		at("send", "--subject", "work.a", "--id", fmt.Sprint("c-", i), "text")
	}
	up, err := upstream.Open(fleet.Context(t), js, "WORK")
	require.NoError(t, err)
	require.NoError(t, w.take(ctx, "one", "c-0"))
	s, err := js.Stream(ctx, "WORK")
	require.NoError(t, err)
	c.Named(s.CachedInfo().Cluster.Leader).Stop()

	for i := range count {
		id := fmt.Sprint("c-", i)
		require.Eventually(t, func() bool {
			// A request that a server takes with it when it ends is not answered.
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return w.take(ctx, "one", id) == nil
		}, 5*time.Minute, time.Millisecond)
		claim := w.held[id]
		claim.Agent = "one"
		// An agent tells until that is confirmed.
		require.Eventually(t, func() bool {
			_, err := up.Answer(ctx, claim, upstream.Answer{Reply: "reply " + id, Settled: upstream.Settled{Attempts: 1, At: time.Now()}})
			return err == nil
		}, 5*time.Minute, time.Millisecond)
	}
	for i := range count {
		assert.Equal(t, fmt.Sprintf("reply c-%d\n", i), at("results", fmt.Sprint("c-", i)))
	}
	require.Eventually(t, func() bool { s, err := js.Stream(ctx, "WORK"); return err == nil && s.CachedInfo().State.Msgs == 0 }, 5*time.Minute, time.Millisecond)
	assert.Contains(t, at("status"), "nothing waits: the stream is empty")
	assert.Equal(t, count, strings.Count(at("results", "--json"), "\n"))
}

// A server without a cluster keeps no replicas.
func TestReplicasWithoutACluster(t *testing.T) {
	s := fleet.Start(t)
	status, out, said := run(t, "setup", "--server", s.URL(), "--replicas", "3")
	assert.Equal(t, 1, status)
	assert.Empty(t, out)
	assert.Contains(t, said, "create stream WORK: ")
	assert.Contains(t, said, "is in no cluster of so many servers: give --replicas 1, or leave the flag out")
	_, js := s.Connect(t)
	_, err := js.Stream(fleet.Context(t), "WORK")
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}
