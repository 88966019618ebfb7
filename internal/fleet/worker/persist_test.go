package worker_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

var persist = []string{"--mode", "persist", "--slots", "3"}

// TestWhatOthersAnsweredMeanwhile cuts off an agent that holds three entries until another
// one has answered them. What waits is settled without a turn, and what is in flight goes on.
func TestWhatOthersAnsweredMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	p := fleet.NewProxy(t, w.server.Address())
	a := w.startAt(p.URL(), filepath.Join(t.TempDir(), "one", "inbox.jsonl"), "one", nil, persist...)
	a.hold()
	w.send("a", "b", "c")
	w.eventually("a turn, and entries that wait", func() bool { return len(w.turns()) == 1 && len(a.held()) == 3 && a.backlog() == 3 }, a)
	launcher := a.launcher()
	p.Cut()
	b := w.start("two", nil)
	w.settled(b, "a", "b", "c")
	b.term()
	b.ended()

	p.Heal()
	w.eventually("that what waits is settled", func() bool { return len(a.held()) == 1 && a.backlog() == 1 }, a)
	w.send("d")
	w.eventually("another entry", func() bool { return len(a.held()) == 2 }, a)
	a.open()
	w.settled(a, "d")
	w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
	// A session that is slow to say that it was woken may be woken for the last one again.
	turns := slices.DeleteFunc(w.turns(), func(id string) bool { return id == "d" })
	assert.ElementsMatch(t, []string{"a", "a", "b", "c"}, turns)
	w.eventually("what it says", func() bool {
		return strings.Count(a.said(), "its entry is taken back without a turn") == 2 && strings.Count(a.said(), "kept as superseded") == 1
	}, a)
	assert.Equal(t, launcher, a.launcher(), "it stays")
	for id, by := range map[string]string{"a": "two", "b": "two", "c": "two", "d": "one"} {
		assert.Equal(t, by, w.known(id).Agent)
		w.repliesTo(id, w.known(id))
	}
}

// An agent that was away says that it is there before it takes a message: else a server that is gone again right after
// that would give the message to an agent that thinks this one gone.
func TestOneThatComesBackSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	p := fleet.NewProxy(t, w.server.Address())
	a := w.startAt(p.URL(), filepath.Join(t.TempDir(), "one", "inbox.jsonl"), "one", nil)
	heard := func() time.Time {
		e, err := w.l.Agents.Get(fleet.Context(t), message.AgentKey("one"))
		require.NoError(t, err)
		return e.Created()
	}
	w.says(a, "takes messages")
	before := heard()
	p.Cut()
	w.says(a, "not connected")
	p.Heal()
	w.eventually("that it says so", func() bool { return heard().After(before) }, a)
}

// TestAPause keeps what waits, or gives that back. What is in flight goes on.
func TestAPause(t *testing.T) {
	t.Parallel()
	for _, gives := range []bool{false, true} {
		w := newWorld(t, 30*time.Second)
		args := persist
		if gives {
			args = append([]string{"--give-back"}, persist...)
		}
		a := w.start("one", nil, args...)
		a.hold()
		w.send("a", "b", "c")
		w.eventually("a turn, and entries that wait", func() bool { return len(w.turns()) == 1 && a.backlog() == 3 }, a)
		b := w.start("two", nil)
		w.eventually("the other agent", func() bool { return w.seen("two").Agent != "" }, b)
		a.pause(time.Hour)
		if gives {
			w.eventually("that others have them", func() bool { return w.known("b") != nil && w.known("c") != nil }, a, b)
		}
		a.open()
		w.eventually("what is in flight", func() bool { return w.known("a") != nil }, a, b)
		if !gives {
			w.eventually("that the rest is kept", func() bool { return len(a.held()) == 2 && a.backlog() == 2 }, a)
			w.send("d")
			w.eventually("that others go on", func() bool { return w.known("d") != nil }, a, b)
			assert.Nil(t, w.known("b"))
			a.resume()
		}
		w.settled(a, "b", "c")
		w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 && a.backlog() == 0 }, a)
		for id, by := range map[string]string{"a": "one", "b": map[bool]string{false: "one", true: "two"}[gives]} {
			assert.Equal(t, by, w.known(id).Agent)
			assert.Equal(t, 1, w.known(id).Attempts)
			w.repliesTo(id, w.known(id))
		}
		assert.Equal(t, 1, strings.Count(strings.Join(w.turns(), ""), "b"))
	}
}

// TestAnAnswerThatComesDuringALook is not given back, though its entry is not in flight any
// more and nothing is known of an answer yet.
func TestAnAnswerThatComesDuringALook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	w.tell("not yet")
	w.hold()
	a := w.start("one", []string{holdVariable + "=outcomes read"}, "--give-back")
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	a.pause(time.Hour)
	require.NoError(t, os.Remove(filepath.Join(w.gate, "not yet")))
	w.told("held", a) // it looks now and then
	w.open()
	w.eventually("an answer", func() bool { return a.results()["a"] == 1 }, a)
	w.tell("go on")
	w.settled(a, "a")
	assert.Equal(t, "one", w.known("a").Agent)
	assert.NotContains(t, a.said(), "given back")
}

// hold has this agent's sessions wait before they answer.
func (r *running) hold() {
	require.NoError(r.t, os.WriteFile(filepath.Join(filepath.Dir(r.inbox), "hold"), nil, 0o600))
}

func (r *running) open() {
	require.NoError(r.t, os.Remove(filepath.Join(filepath.Dir(r.inbox), "hold")))
}

// launcher is what the lock of this agent's launcher says.
func (r *running) launcher() (pid string) {
	require.Eventually(r.t, func() bool { // it is empty for a moment where it is written
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(r.inbox), ".launch-lock"))
		require.NoError(r.t, err)
		pid, _, _ = strings.Cut(string(raw), "\n")
		return pid != ""
	}, 5*time.Minute, 10*time.Millisecond)
	return pid
}
