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
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
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

// A break of the connection that cuts off a request is told by the connection, which may come to that only later. What
// keeps a message from being kept after that is said.
func TestABreakIsNotSaidOfEachMessage(t *testing.T) {
	t.Parallel()
	ctx, s := fleet.Context(t), fleet.Start(t)
	p := fleet.NewProxy(t, s.Address())
	nc, js := fleet.Connect(t, p.URL())
	plan, err := setup.Make(ctx, js, &setup.Wanted{
		Stream: "WORK", Subjects: []string{"work.>"}, MaxDeliver: 5, AckWait: time.Minute, Duplicates: time.Minute, Replicas: 1,
	})
	require.NoError(t, err)
	require.NoError(t, plan.Apply(ctx))
	var said []string
	a := &Agent{o: Options{Say: func(sentence string) { said = append(said, sentence) }}, conn: &link.Conn{}} // it knows of no break
	a.up, err = upstream.Open(ctx, js, "WORK")
	require.NoError(t, err)
	c := upstream.Claim{Message: message.Message{ID: "a", Ack: "$JS.ACK.WORK.gone.1.1.1.1750000000000000000.0"}}

	p.HalfOpen()
	kept := make(chan keeping)
	go func() { kept <- a.keepOne(ctx, c, keeping{}) }()
	require.Eventually(t, func() bool { return p.Missed() > 0 }, 5*time.Minute, time.Millisecond)
	p.Heal()
	last := <-kept
	assert.Empty(t, said)

	require.Eventually(t, nc.IsConnected, 5*time.Minute, time.Millisecond)
	_ = a.keepOne(ctx, c, last)
	require.Len(t, said, 1)
	assert.Contains(t, said[0], "its consumer does not answer")
}
