package fleet

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheServerKeepsItsPortAndItsFiles(t *testing.T) {
	s := Start(t)
	_, js := s.Connect(t)
	WorkQueue(t, js, "WORK", "work.>")
	_, err := js.Publish(Context(t), "work.a", []byte("one"))
	require.NoError(t, err)
	before := s.URL()
	s.Restart(t)
	require.Equal(t, before, s.URL())
	_, js = s.Connect(t)
	stream, err := js.Stream(Context(t), "WORK")
	require.NoError(t, err)
	assert.EqualValues(t, 1, stream.CachedInfo().State.Msgs)
}

func TestAConnectionSurvivesARestart(t *testing.T) {
	s := Start(t)
	back := make(chan struct{}, 1)
	nc, _ := s.Connect(t, nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }))
	s.Restart(t)
	arrives(t, back)
	require.NoError(t, nc.FlushTimeout(time.Minute))
}

func TestProxy(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Address())
	gone, back := make(chan struct{}, 9), make(chan struct{}, 9)
	nc, js := Connect(t, p.URL(),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { gone <- struct{}{} }),
		nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }))
	WorkQueue(t, js, "WORK", "work.>")
	short := 50 * time.Millisecond

	p.Cut()
	arrives(t, gone)
	require.Eventually(t, func() bool { return p.Missed() > 0 }, 5*time.Minute, time.Millisecond)
	assert.Zero(t, first(p.Connections()))
	p.Heal()
	arrives(t, back)

	p.Drop()
	arrives(t, gone)
	arrives(t, back)

	p.Pause()
	require.ErrorIs(t, nc.FlushTimeout(short), nats.ErrTimeout)
	p.Heal()
	require.NoError(t, nc.FlushTimeout(time.Minute))

	p.Delay(time.Millisecond)
	require.NoError(t, nc.FlushTimeout(time.Minute))
	p.Heal()

	p.HalfOpen()
	require.NoError(t, nc.Publish("work.lost-ack", nil))
	require.ErrorIs(t, nc.FlushTimeout(short), nats.ErrTimeout)
	require.Eventually(t, func() bool { return p.Missed() > 0 }, 5*time.Minute, time.Millisecond)
	_, direct := s.Connect(t)
	require.Eventually(t, func() bool { return messages(t, direct) == 1 }, 5*time.Minute, time.Millisecond)
	p.Heal()
	arrives(t, gone)
	arrives(t, back)
	require.NoError(t, nc.FlushTimeout(time.Minute))
}

func first(n, _ int) int { return n }

func messages(t *testing.T, js jetstream.JetStream) uint64 {
	stream, err := js.Stream(Context(t), "WORK")
	require.NoError(t, err)
	return stream.CachedInfo().State.Msgs
}

func arrives(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-Context(t).Done():
		require.Fail(t, "it did not come")
	}
}
