package verbs

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

// Whether a role may look at something is tried quietly. A server that is silent later is not refusing that.
func TestWhyTheServerIsSilent(t *testing.T) {
	s := fleet.Start(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "geheim", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"no.>"}},
		}}}
	})
	var o common
	var err error
	o.c, err = link.Connect(fleet.Context(t), &link.Flags{Server: strings.Replace(s.URL(), "://", "://u:geheim@", 1)}, link.Options{})
	require.NoError(t, err)
	t.Cleanup(o.c.Close)
	refused := func() {
		require.NoError(t, o.c.NATS.Publish("no.way", nil))
		require.NoError(t, o.c.NATS.FlushTimeout(time.Minute))
		require.ErrorIs(t, o.c.NATS.LastError(), nats.ErrPermissionViolation)
	}
	o.c.Quietly(func() {
		refused()
		// What the server says is told in its order, so the refusal was told before this.
		require.NoError(t, o.c.NATS.ForceReconnect())
		require.Eventually(t, func() bool { return len(o.c.Back()) > 0 }, 5*time.Minute, time.Millisecond)
	})
	refusal := o.explain(context.DeadlineExceeded)
	assert.NotContains(t, refusal.Error(), "the role of this user")
	assert.ErrorIs(t, refusal, context.DeadlineExceeded)
	refused()
	require.Eventually(t, func() bool { return o.c.Refusal() != nil }, 5*time.Minute, time.Millisecond)
	assert.ErrorContains(t, o.explain(context.DeadlineExceeded), "the role of this user does not allow it")
}

// Nobody is sent to setup, which refuses such a server, too.
func TestAServerThatIsTooOld(t *testing.T) {
	w := there(t)
	url := fleet.Older(t, w.server, "2.12.0")
	const says = "the server has version 2.12.0 and writes one key at a time: agents need nats-server 2.12.1 or later"
	status, _, said := run(t, "status", "--server", url)
	assert.Zero(t, status)
	assert.Equal(t, "heartbeat-nats: "+says+"\n", said)
	for _, args := range [][]string{{"setup"}, {"status", "--stream", "NONE"}, {"send", "--stream", "NONE", "--subject", "none.a", "x"}} {
		status, _, said := run(t, append(args, "--server", url)...)
		assert.Equal(t, cli.ExitError, status, "%q", args)
		assert.Contains(t, said, says, "%q", args)
		assert.NotContains(t, said, "makes it", "%q", args)
	}
}

// Without results no agent works, whatever else is there.
func TestABucketThatIsMissing(t *testing.T) {
	w := there(t)
	require.NoError(t, w.js.DeleteKeyValue(fleet.Context(t), message.Bucket("WORK")))
	status, _, said := run(t, "status", "--server", w.server.URL())
	assert.Equal(t, cli.ExitError, status)
	assert.Contains(t, said, "the bucket WORK-results is not there")
	assert.Contains(t, said, "heartbeat-nats setup --stream WORK makes it")
}

func TestAServerWithoutJetStream(t *testing.T) {
	s := fleet.Start(t, func(o *server.Options) { o.JetStream = false })
	for _, args := range [][]string{{"setup"}, {"status"}, {"send", "--subject", "work.a", "x"}} {
		status, _, said := run(t, append(args, "--server", s.URL())...)
		assert.Equal(t, cli.ExitError, status, "%q", args)
		assert.Contains(t, said, "start nats-server with --jetstream", "%q", args)
	}
}
