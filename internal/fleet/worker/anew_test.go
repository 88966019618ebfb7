package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// TestWhatIsDeletedAndMadeAnew deletes something in the middle of a turn, and has setup make
// it anew once the agent has found out.
func TestWhatIsDeletedAndMadeAnew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remove func(ctx context.Context, w *world) error
		says   string
	}{
		"stream":   {func(ctx context.Context, w *world) error { return w.js.DeleteStream(ctx, "WORK") }, "the stream WORK is not there"},
		"consumer": {func(ctx context.Context, w *world) error { return w.js.DeleteConsumer(ctx, "WORK", w.consumer().Name) }, "was deleted or made anew since message a (WORK:1) came"},
		"results":  {func(ctx context.Context, w *world) error { return w.js.DeleteKeyValue(ctx, message.Bucket("WORK")) }, "`heartbeat-nats setup --stream WORK` makes it"},
		"agents":   {func(ctx context.Context, w *world) error { return w.js.DeleteKeyValue(ctx, message.Agents("WORK")) }, "until then status shows this agent as away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3*time.Second)
			w.hold()
			a := w.start("one", nil)
			w.send("a")
			w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
			require.NoError(t, c.remove(fleet.Context(t), w))
			w.open()
			w.says(a, c.says)
			w.setUp(3 * time.Second)
			w.send("b")
			w.settled(a, "a", "b")
			w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 && a.backlog() == 0 }, a)
			assert.Equal(t, []string{"a", "b"}, w.turns())
			for _, id := range []string{"a", "b"} {
				assert.Equal(t, upstream.WasAnswered, w.known(id).Outcome)
				w.repliesTo(id, w.known(id))
			}
			w.eventually("that others see it", func() bool { return w.seen("one").Answered == 2 }, a)
		})
	}
}

// TestTheStreamOfDeadLettersIsDeleted keeps a message until its dead letter is kept.
func TestTheStreamOfDeadLettersIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	a := w.start("one", nil, "--slots", "2", "--no-session")
	w.send("b")
	w.eventually("it is at work", func() bool { return len(a.held()) == 1 }, a)
	require.NoError(t, w.js.DeleteStream(fleet.Context(t), message.Dead("WORK")))
	w.sendText("a", " ")
	w.says(a, "`heartbeat-nats setup --stream WORK` makes it")
	assert.EqualValues(t, 2, w.waiting())
	w.setUp(3 * time.Second)
	w.eventually("a dead letter", func() bool { return w.waiting() == 1 }, a)
	assert.EqualValues(t, 1, w.letters())
	assert.Equal(t, upstream.Kept, w.known("a").LetterState)
}
