package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/testing/fleet"
)

// What the server refused long ago, as a reply to a subject that the role may not use, is not why it is silent now.
func TestAnOldRefusalExplainsNothing(t *testing.T) {
	t.Parallel()
	s := fleet.Start(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "geheim", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"no.>"}},
		}}}
	})
	a := &Agent{o: Options{Say: func(string) {}}, retries: map[string]retry{}}
	a.o.Stream, a.o.Subject = "WORK", "work.>"
	var err error
	a.conn, err = link.Connect(fleet.Context(t), &link.Flags{Server: strings.Replace(s.URL(), "://", "://u:geheim@", 1)}, link.Options{})
	require.NoError(t, err)
	t.Cleanup(a.conn.Close)
	require.NoError(t, a.conn.NATS.Publish("no.way", nil))
	require.Eventually(t, func() bool { return a.conn.Refusal() != nil }, 5*time.Minute, time.Millisecond)
	silent, cancel := context.WithDeadline(fleet.Context(t), time.Now())
	defer cancel()
	a.pullFailed(silent, errors.New("the consumer is gone"))
	assert.Contains(t, a.retries[asking].why, context.DeadlineExceeded.Error())
	assert.NotContains(t, a.retries[asking].why, "the role of this user")
}

// While the library dials, whoever asks it anything waits for that. An agent without a server still has its inbox to see to.
func TestTheLibraryIsNotAskedWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	p := fleet.NewProxy(t, fleet.Start(t).Address())
	c, err := link.Connect(fleet.Context(t), &link.Flags{Server: p.URL()}, link.Options{})
	require.NoError(t, err)
	t.Cleanup(c.NATS.Close)
	p.Cut()
	require.Eventually(t, func() bool { return !c.Connected() }, 5*time.Minute, time.Millisecond)
	c.NATS = nil
	a := &Agent{conn: c}
	a.putPresence(fleet.Context(t), false)
	assert.NotZero(t, a.told.at)
}
