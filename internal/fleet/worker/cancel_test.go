package worker_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// What a person cancels is taken from the inboxes of agents, as long as no session has it.
func TestWhatIsCanceledIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	w.hold()
	a := w.start("one", nil, "--slots", "3")
	w.send("a", "b")
	w.eventually("a turn, and an entry behind it", func() bool { return len(w.turns()) == 1 && a.backlog() == 2 }, a)
	w.send("c")
	for seq, id := range []string{"a", "b", "c"} {
		known, _, err := w.up.Cancel(fleet.Context(t), upstream.Claim{Message: message.Message{ID: id, Seq: uint64(seq + 1)}})
		require.NoError(t, err)
		assert.Nil(t, known)
	}
	w.eventually("that only what a session has is left", func() bool { return a.backlog() == 1 && w.waiting() == 1 }, a)
	w.open()
	w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 && w.waiting() == 0 }, a)
	assert.Equal(t, []string{"a"}, w.turns())
	for _, id := range []string{"a", "b", "c"} {
		assert.Equal(t, upstream.Canceled, w.known(id).Reason)
		assert.Zero(t, w.replied(id))
	}
	assert.Zero(t, w.letters())
}

// An agent that is killed once it has taken an entry back does not take the end of that entry for the message's.
func TestKilledWithAnEntryTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	w.hold()
	a := w.start("one", []string{killVariable + "=taken back"}, "--slots", "3")
	w.send("a", "b", "c")
	w.eventually("a turn, and entries behind it", func() bool { return len(w.turns()) == 1 && a.backlog() == 3 }, a)
	known, _, err := w.up.Cancel(fleet.Context(t), upstream.Claim{Message: message.Message{ID: "c", Seq: 3}})
	require.NoError(t, err)
	assert.Nil(t, known)
	<-a.Done
	a.killLauncher()
	w.open()
	a = a.again(w, "--slots", "3")
	w.settled(a, "a", "b", "c")
	w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
	_, err = w.l.Results.Get(fleet.Context(t), message.SupersededKey("c", "one"))
	assert.ErrorIs(t, err, jetstream.ErrKeyNotFound)
	assert.NotContains(t, w.turns(), "c")
}

// A person may cancel what an agent holds, also once somebody has deleted the message from the stream.
func TestWhatIsDeletedIsCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	a := w.start("one", nil, "--no-session")
	w.send("a")
	w.eventually("its entry", func() bool { return a.backlog() == 1 }, a)
	require.NoError(t, w.l.Stream.Purge(fleet.Context(t)))
	out, err := exec.Command("heartbeat-nats", "cancel", "--server", w.server.URL(), "a").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "canceled a: agent one has it")
	w.eventually("that it is taken back", func() bool { return a.backlog() == 0 && len(a.held()) == 0 }, a)
}

// What is canceled does not wait on the stream until its time: it would be begun if that comes after the decision is
// forgotten.
func TestWhatIsPutOffIsCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	w.sendAt("later", `"not_before":"`+stamp(time.Hour)+`"`)
	_, _, err := w.up.Cancel(fleet.Context(t), upstream.Claim{Message: message.Message{ID: "later", Seq: 1}})
	require.NoError(t, err)
	a := w.start("one", nil, "--no-session")
	w.eventually("that it is off the stream", func() bool { return w.waiting() == 0 }, a)
	assert.Empty(t, a.held())
}
