package worker_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// A machine that slept has a connection, and does not know that others were given what it
// holds.
func TestWhatWaitedWhileTheMachineSleptIsNotDoneTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	w.hold()
	a := w.start("one", nil, "--slots", "2")
	w.send("a", "b")
	w.eventually("a turn, and another message", func() bool { return len(w.turns()) == 1 && len(a.held()) == 2 }, a)
	require.NoError(t, a.Process.Signal(syscall.SIGSTOP))
	c, err := w.js.Consumer(fleet.Context(t), "WORK", w.consumer().Name)
	require.NoError(t, err)
	for elsewhere := map[string]bool{}; len(elsewhere) < 2; {
		m, err := c.Next(jetstream.FetchMaxWait(time.Minute))
		require.NoError(t, err)
		is, err := message.Parse(m)
		require.NoError(t, err)
		if elsewhere[is.ID] {
			continue // the next one took longer than AckWait
		}
		elsewhere[is.ID] = true
		_, err = w.up.Answer(fleet.Context(t), w.takes("two", m), upstream.Answered(inbox.Result{Reply: "elsewhere"}))
		require.NoError(t, err)
	}
	require.NoError(t, a.Process.Signal(syscall.SIGCONT))
	w.eventually("only what a session has is held", func() bool { return len(a.held()) == 1 }, a)
	w.open()
	w.eventually("nothing is held", func() bool { return len(a.held()) == 0 }, a)
	assert.Equal(t, map[string]int{"a": 1}, a.results())
}
