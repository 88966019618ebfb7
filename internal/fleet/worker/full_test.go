package worker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// TestAFullDiskOfAnAgent refuses what an agent writes from a step on: its ledger, the entry
// behind that, and at the end that it holds nothing any more.
func TestAFullDiskOfAnAgent(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"pulled", "claimed", "appended", "answered", "settled"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3*time.Second)
			a := w.start("one", []string{fullVariable + "=" + step})
			w.send("a")
			w.told("full", a)
			if step == "pulled" || step == "claimed" || step == "settled" {
				w.says(a, "no space left on device")
				w.eventually("that others see why", func() bool {
					return strings.Contains(w.seen("one").HeldUp, "no space left on device") || len(a.held()) > 0
				}, a)
			}
			w.tell("room")
			w.settled(a, "a")
			w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
			assert.Equal(t, []string{"a"}, w.turns())
			assert.Equal(t, 1, w.known("a").Attempts)
			w.repliesTo("a", w.known("a"))
			assert.Equal(t, w.known("a").Agent, w.lease("a").Agent)
		})
	}
}

// A disk that stays full does not use up the attempts of a message.
func TestAMessageThatNoAgentCanTakeIsNotDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	a := w.start("one", []string{fullVariable + "=pulled"})
	w.send("a")
	w.eventually("as many copies as a message has attempts", func() bool { return w.consumer().Delivered.Consumer >= 5 }, a)
	b := w.start("two", nil)
	w.settled(b, "a")
	assert.Equal(t, upstream.WasAnswered, w.known("a").Outcome)
	assert.Equal(t, "two", w.known("a").Agent)
	assert.Equal(t, 1, w.known("a").Attempts)
}

// TestAFullFileSystemOfAnAgent is a real one.
func TestAFullFileSystemOfAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	dir := mount(t, "4m")
	a := w.startAt(w.server.URL(), filepath.Join(dir, "inbox.jsonl"), "one", nil)
	w.send("a")
	w.settled(a, "a")
	fill(t, dir)
	w.eventually("that others see why", func() bool { return strings.Contains(w.seen("one").HeldUp, "disk is full") }, a)
	w.send("b")
	assert.EqualValues(t, 1, w.waiting())
	require.NoError(t, os.Remove(filepath.Join(dir, "fill")))
	w.settled(a, "b")
	assert.Equal(t, []string{"a", "b"}, w.turns())
}

// TestAFullBucket has no room for a decision: the message stays until there is.
func TestAFullBucket(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	bucket, err := w.js.Stream(fleet.Context(t), "KV_"+message.Bucket("WORK"))
	require.NoError(t, err)
	was := bucket.CachedInfo().Config
	full := was
	full.MaxBytes = 64
	full.Discard = jetstream.DiscardNew
	w.hold()
	a := w.start("one", nil)
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	_, err = w.js.UpdateStream(fleet.Context(t), full)
	require.NoError(t, err)
	w.open()
	w.says(a, "maximum bytes exceeded")
	assert.EqualValues(t, 1, w.waiting())
	assert.Nil(t, w.known("a"))
	assert.Zero(t, w.replied("a"))
	heldUp := func() bool {
		return strings.Contains(w.seen("one").HeldUp, "it cannot tell what came of its messages: tell the stream WORK that message a (WORK:1) was answered")
	}
	w.eventually("it says so", heldUp, a)
	_, err = w.js.UpdateStream(fleet.Context(t), was)
	require.NoError(t, err)
	w.settled(a, "a")
	w.eventually("it no longer says so", func() bool { return w.seen("one").HeldUp == "" }, a)
	assert.Equal(t, []string{"a"}, w.turns())
	w.repliesTo("a", w.known("a"))
}

// TestAFullFileSystemOfTheServer has no room for a decision, either.
func TestAFullFileSystemOfTheServer(t *testing.T) {
	t.Parallel()
	dir := mount(t, "64m")
	w := newWorldAt(t, dir, 3*time.Second)
	w.hold()
	a := w.start("one", nil)
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	fill(t, dir)
	w.open()
	w.says(a, "was answered: write its decision to the bucket")
	require.NoError(t, os.Remove(filepath.Join(dir, "fill")))
	w.server.Restart(t) // it has switched its streams off
	w.settled(a, "a")
	assert.Equal(t, []string{"a"}, w.turns())
	assert.LessOrEqual(t, w.replied("a"), 1) // the agent may be back before who listens is
	w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
}

// seen is what an agent says of itself.
func (w *world) seen(name string) message.Presence {
	e, err := w.l.Agents.Get(fleet.Context(w.t), message.AgentKey(name))
	if err != nil {
		return message.Presence{} // it has said nothing yet
	}
	p, err := message.ParsePresence(e.Value())
	require.NoError(w.t, err)
	return p
}

// mount makes a file system in memory, where that may be done.
func mount(t *testing.T, size string) string {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=700,size="+size, "none", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a file system: %s", out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", dir).Run()) })
	return dir
}

func fill(t *testing.T, dir string) {
	f, err := os.Create(filepath.Join(dir, "fill"))
	require.NoError(t, err)
	_, err = f.Write(make([]byte, 64<<20))
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NoError(t, f.Close())
}
