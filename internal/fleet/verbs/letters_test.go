package verbs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// setAside puts dead letters of messages d-0, d-1, ... that are as large as letters get.
func (w *world) setAside(t *testing.T, count int) {
	t.Helper()
	for i := range count {
		m := nats.NewMsg(message.DeadSubject("WORK", fmt.Sprint("d-", i)))
		m.Header.Set(message.HeaderID, fmt.Sprint("d-", i))
		m.Header.Set(upstream.HeaderSubject, "work.a")
		m.Header.Set(upstream.HeaderReason, "limit")
		m.Data = []byte(strings.Repeat("x", 16<<10))
		_, err := w.js.PublishMsgAsync(m)
		require.NoError(t, err)
	}
	select {
	case <-w.js.PublishAsyncComplete():
	case <-fleet.Context(t).Done():
		require.Fail(t, "they were not published")
	}
}

// Two who requeue all letters at once send each message once.
func TestRequeuedTwiceAtOnce(t *testing.T) {
	w := there(t)
	const count = 40
	w.setAside(t, count)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			status, _, said := run(t, "dead", "requeue", "--all", "--server", w.server.URL())
			assert.Zero(t, status, said)
		})
	}
	both.Wait()
	s, err := w.js.Stream(fleet.Context(t), "WORK")
	require.NoError(t, err)
	assert.EqualValues(t, count, s.CachedInfo().State.Msgs)
	_, out, _ := run(t, "dead", "list", "--server", w.server.URL())
	assert.Empty(t, out)
}

// Of two letters with one id, the second is not lost in the message of the first.
func TestTwoLettersOfOneID(t *testing.T) {
	w := there(t)
	ctx := fleet.Context(t)
	up, err := upstream.Open(ctx, w.js, "WORK")
	require.NoError(t, err)
	results, err := w.js.Stream(ctx, "KV_"+message.Bucket("WORK"))
	require.NoError(t, err)
	forget := func() { require.NoError(t, results.Purge(ctx)) }
	for _, text := range []string{"june", "july"} {
		forget()
		m := nats.NewMsg("work.a")
		m.Header.Set(message.HeaderID, "monthly")
		_, err := w.js.PublishMsg(ctx, m)
		require.NoError(t, err)
		require.NoError(t, w.take(ctx, "one", "monthly"))
		_, err = up.Dead(ctx, w.held["monthly"], upstream.Letter{Answer: upstream.Answer{Settled: upstream.Settled{Reason: "limit"}}, Payload: []byte(text)})
		require.NoError(t, err)
		delete(w.held, "monthly")
	}
	forget() // what became of either
	status, out, said := run(t, "dead", "requeue", "--all", "--server", w.server.URL())
	assert.Equal(t, 1, status)
	assert.Equal(t, "requeued monthly (WORK:3)\n", out)
	assert.Contains(t, said, "another one of that id was sent or requeued before")
	_, out, _ = run(t, "dead", "show", "monthly", "--server", w.server.URL())
	assert.Contains(t, out, "july")

	require.NoError(t, w.take(ctx, "one", "monthly"))
	_, err = up.Answer(ctx, w.held["monthly"], upstream.Answer{Reply: "done"})
	require.NoError(t, err)
	status, _, said = run(t, "dead", "requeue", "monthly", "--server", w.server.URL())
	assert.Equal(t, 1, status)
	assert.Contains(t, said, "send its text under another id")
	_, out, _ = run(t, "dead", "show", "monthly", "--server", w.server.URL())
	assert.Contains(t, out, "july")
}

// A message that was sent under the id of a letter whose decision is forgotten keeps its answer.
func TestALetterWhoseIDWasSentAnew(t *testing.T) {
	for name, isTaken := range map[string]bool{"taken": true, "waiting": false} {
		t.Run(name, func(t *testing.T) {
			w := there(t)
			ctx := fleet.Context(t)
			w.setAside(t, 1)
			m := nats.NewMsg("work.a")
			m.Header.Set(message.HeaderID, "d-0")
			_, err := w.js.PublishMsg(ctx, m)
			require.NoError(t, err)
			if isTaken {
				require.NoError(t, w.take(ctx, "one", "d-0"))
			}
			status, _, said := run(t, "dead", "requeue", "d-0", "--server", w.server.URL())
			assert.Equal(t, 1, status)
			assert.Contains(t, said, "send its text under another id")
			require.NoError(t, w.take(ctx, "one", "d-0"))
			up, err := upstream.Open(ctx, w.js, "WORK")
			require.NoError(t, err)
			fate, err := up.Answer(ctx, w.held["d-0"], upstream.Answer{Reply: "done"})
			require.NoError(t, err)
			assert.Equal(t, upstream.WasAnswered, fate.Outcome)
		})
	}
}

// Of many letters only their names are kept, and all of them go with one request.
func TestManyLetters(t *testing.T) {
	w := there(t)
	const count = 2000
	w.setAside(t, count)
	status, out, said := run(t, "dead", "list", "--server", w.server.URL())
	assert.Zero(t, status, said)
	assert.Equal(t, count, strings.Count(out, "\n"))
	status, out, said = run(t, "dead", "purge", "--all", "--yes", "--server", w.server.URL())
	assert.Zero(t, status, said)
	assert.Equal(t, count, strings.Count(out, "purged "))
	_, _, said = run(t, "dead", "list", "--server", w.server.URL())
	assert.Contains(t, said, "nothing was set aside")
}

// A list ends where somebody purges what it has not shown yet.
func TestPurgedWhileShown(t *testing.T) {
	w := there(t)
	w.setAside(t, 100)
	c, err := link.Connect(fleet.Context(t), &link.Flags{Server: w.server.URL()}, link.Options{})
	require.NoError(t, err)
	defer c.Close()
	b := &dead{common: common{stream: "WORK", c: c}}
	b.box, err = b.openStream(fleet.Context(t), "WORK-dead")
	require.NoError(t, err)
	shown := 0
	for _, err := range b.messages(fleet.Context(t), b.box) {
		require.NoError(t, err)
		if shown++; shown == 1 {
			require.NoError(t, b.box.Purge(context.Background()))
		}
	}
	assert.Less(t, shown, 100)
}
