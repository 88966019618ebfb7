package worker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/see"
	"heartbeat/internal/testing/fleet"
)

func launches(box *inbox.Inbox, pid int) bool {
	l := see.LauncherOf(box)
	return l != nil && l.PID == pid
}

func TestOneMessageEndToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	a := w.start("one", nil)
	w.send("a", "b.c *")
	w.settled(a, "a", "b.c *")
	for _, id := range []string{"a", "b.c *"} {
		r := w.known(id)
		assert.Equal(t, upstream.WasAnswered, r.Outcome)
		assert.Equal(t, "one", r.Agent)
		w.eventually("its reply", func() bool { return w.replied(id) == 1 }, a)
	}
	w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
	a.term()
	assert.Equal(t, 128+int(syscall.SIGTERM), a.ended())
	e, err := w.l.Agents.Get(fleet.Context(t), message.AgentKey("one"))
	require.NoError(t, err)
	p, err := message.ParsePresence(e.Value())
	require.NoError(t, err)
	assert.True(t, p.Ended)
	assert.EqualValues(t, 2, p.Answered)
}

func TestAKillDuringTheTurn(t *testing.T) {
	t.Parallel()
	for _, launcherToo := range []bool{false, true} {
		w := newWorld(t, 10*time.Second)
		w.hold()
		a := w.start("one", nil)
		w.send("a")
		w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
		a.kill()
		want := []string{"a"}
		if launcherToo {
			a.killLauncher()
			want = []string{"a", "a"} // the session was killed in the middle
		}
		b := a.again(w)
		if launcherToo {
			w.eventually("the second turn", func() bool { return len(w.turns()) == 2 }, b)
		}
		w.open()
		w.settled(b, "a")
		assert.Equal(t, want, w.turns())
		assert.Equal(t, 1, w.replied("a"))
	}
}

func TestALauncherThatOutlivesItsAgentEndsWithTheNextRun(t *testing.T) {
	t.Parallel()
	persist := []string{"--mode", "persist"}
	for name, end := range map[string]func(*world, *running){
		"drain": func(w *world, _ *running) {
			_, err := w.l.Agents.Put(fleet.Context(t), message.DrainKey("one"), []byte("1"))
			require.NoError(t, err)
		},
		"SIGTERM": func(_ *world, b *running) { b.term() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10*time.Second)
			a := w.start("one", nil, persist...)
			w.send("a")
			w.settled(a, "a")
			a.kill()
			box, err := inbox.Open(a.inbox, inbox.Options{})
			require.NoError(t, err)
			l := see.LauncherOf(box)
			require.NotNil(t, l)
			b := a.again(w, persist...)
			w.send("b")
			w.settled(b, "b")
			require.True(t, launches(box, l.PID), "it goes on meanwhile")
			end(w, b)
			b.ended()
			assert.Nil(t, see.LauncherOf(box))
			assert.Contains(t, b.said(), "goes on")
		})
	}
}

func TestAnotherAgentTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	w.hold()
	a := w.start("one", nil)
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	a.kill()
	a.killLauncher()
	b := w.start("two", nil)
	w.eventually("the second turn", func() bool { return len(w.turns()) == 2 }, b)
	box, err := inbox.Open(a.inbox, inbox.Options{})
	require.NoError(t, err)
	w.eventually("the first session is gone", func() bool { return see.Glance(t.Context(), box, nil).Client.Ended() }, a)
	w.open()
	w.settled(b, "a")
	assert.Equal(t, "two", w.known("a").Agent)
	assert.Equal(t, 1, w.replied("a"))

	// Its entry is settled without another turn.
	c := a.again(w)
	w.eventually("an empty ledger", func() bool { return len(c.held()) == 0 }, c)
	assert.Len(t, w.turns(), 2)
	assert.Equal(t, 1, w.replied("a"))
	assert.Empty(t, c.results())
}

func TestASupersededEntryThatWaitsIsSettledWithoutATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	a := w.start("one", []string{killVariable + "=appended"})
	w.send("a")
	<-a.Done
	b := w.start("two", nil)
	w.settled(b, "a")
	c := a.again(w)
	w.eventually("an empty ledger", func() bool { return len(c.held()) == 0 }, c)
	assert.Equal(t, []string{"a"}, w.turns())
	assert.Equal(t, 1, w.replied("a"))
}

func TestWhatAnotherAgentHasNowIsLeftToIt(t *testing.T) {
	t.Parallel()
	for _, inFlight := range []bool{false, true} {
		t.Run(fmt.Sprint("in flight: ", inFlight), func(t *testing.T) {
			w := newWorld(t, 3*time.Second)
			w.hold()
			var a *running
			want := []string{"a"}
			if inFlight {
				a = w.start("one", nil)
				w.send("a")
				w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
				a.kill()
				a.killLauncher()
				want = append(want, "a")
			} else {
				a = w.start("one", []string{killVariable + "=appended"})
				w.send("a")
				<-a.Done
			}
			b := w.start("two", nil)
			w.eventually("a turn of the other agent", func() bool { return len(w.turns()) == len(want) }, b)
			w.eventually("what it says", func() bool { return saysItHas(w, "two", "a") }, b)
			a = a.again(w)
			w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
			w.eventually("what the first agent says", func() bool {
				return strings.Contains(a.said(), "message a is with agent two now: its entry is taken back without a turn")
			}, a)
			w.open()
			w.settled(b, "a")
			assert.Equal(t, want, w.turns())
			assert.Equal(t, "two", w.known("a").Agent)
			assert.Equal(t, 1, w.replied("a"))
			assert.Empty(t, a.results())
		})
	}
}

// An entry that its agent gave back for later is taken back, too: it would come again here
// once its time has come.
func TestWhatWasPutOffIsLeftToAnotherAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	w.hold()
	a := w.start("one", nil)
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	a.kill()
	a.killLauncher()
	later := time.Now().Add(time.Hour)
	a.transact(func(tx *inbox.Tx) error {
		return tx.Say(inbox.Verdict{Kind: inbox.VerdictFailed, Text: "not now", Until: &later})
	})
	b := w.start("two", nil)
	w.eventually("a turn of the other agent", func() bool { return len(w.turns()) == 2 }, b)
	w.eventually("what it says", func() bool { return saysItHas(w, "two", "a") }, b)
	a = a.again(w)
	w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
	box, err := inbox.Open(a.inbox, inbox.Options{})
	require.NoError(t, err)
	scheduled, err := box.Scheduled()
	require.NoError(t, err)
	assert.Empty(t, scheduled)
	w.open()
	w.settled(b, "a")
	assert.Equal(t, 1, w.replied("a"))
}

// saysItHas reports whether an agent says that it has the copy of a message that its lease is of: the second, or a
// later one, since a copy that comes while the holder counts as alive is given back.
func saysItHas(w *world, agent, id string) bool {
	l := w.lease(id)
	return l != nil && l.Agent == agent && l.Copy > 1 && l.Attempt == 2 && copyWith(w, agent) == l.Copy
}

// copyWith is the copy of its only message that an agent says it has.
func copyWith(w *world, agent string) uint64 {
	e, err := w.l.Agents.Get(fleet.Context(w.t), message.AgentKey(agent))
	if err != nil {
		return 0
	}
	p, err := message.ParsePresence(e.Value())
	require.NoError(w.t, err)
	if len(p.Holds) != 1 {
		return 0
	}
	return p.Holds[0].Copy
}

// An agent that starts again must find that another one has its message from the moment on in which
// it can become a turn there.
func TestATakeOverIsKnownBeforeItIsAnEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	a := w.start("one", []string{killVariable + "=appended"}, "--no-session")
	w.send("a")
	<-a.Done
	b := w.start("two", []string{holdVariable + "=claimed"}, "--no-session")
	w.told("held", b)
	assert.Equal(t, "two", w.lease("a").Agent)
	w.tell("go on")
}

// A server that was killed may hand out at once what it had handed out just before. Who has it by then has not yet said
// so of itself, and is not taken for an agent that let it go.
func TestWhatWasJustTakenStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	w.send("a")
	m := w.next(w.consumer().Name)
	value, err := json.Marshal(message.Presence{Agent: "two", EverySeconds: 20})
	require.NoError(t, err)
	_, err = w.l.Agents.Put(fleet.Context(t), message.AgentKey("two"), value)
	require.NoError(t, err)
	w.takes("two", m)
	require.NoError(t, m.Nak())
	a := w.start("one", nil, "--no-session")
	w.says(a, "message a is given back: agent two, which has it, was heard a moment ago")
	assert.Equal(t, "two", w.lease("a").Agent)
}

// An agent that was killed with the lease has it no longer: whoever lets go of the
// older one gets it again.
func TestWhatAnAgentHadThatWasKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	a := w.start("one", []string{killVariable + "=appended"})
	w.send("a")
	<-a.Done
	b := w.start("two", []string{killVariable + "=appended"})
	<-b.Done
	a = a.again(w)
	w.settled(a, "a")
	assert.Equal(t, []string{"a"}, w.turns())
	assert.Equal(t, 1, w.replied("a"))
}

func TestAMessageThatIsHeldLongIsNotGivenOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10*time.Second)
	w.hold()
	a := w.start("one", nil)
	b := w.start("two", nil)
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a, b)
	began := time.Now()
	w.eventually("more than twice AckWait", func() bool { return time.Since(began) > 25*time.Second })
	info := w.consumer()
	assert.Zero(t, info.NumRedelivered)
	assert.EqualValues(t, 1, info.Delivered.Consumer)
	w.open()
	w.settled(a, "a")
	assert.Len(t, w.turns(), 1)
}

func TestAStallLetsAMessageGoElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	w.hold()
	a := w.start("one", nil, "--stall", "10s")
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	b := w.start("two", nil)
	w.eventually("a second turn", func() bool { return len(w.turns()) == 2 }, a, b)
	w.says(a, "no longer kept from other agents")
	w.open()
	w.settled(b, "a")
	w.eventually("both ledgers empty", func() bool { return len(a.held())+len(b.held()) == 0 }, a, b)
	assert.Equal(t, 1, w.replied("a"))
	w.eventually("what the second says", func() bool { return strings.Count(a.said()+b.said(), "kept as superseded") == 1 }, a, b)
}

func TestACopyOfWhatIsHeldIsNotAppended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.hold()
	a := w.start("one", nil, "--slots", "2")
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	// As after a time without network: the server hands out another copy.
	_, err := w.nc.Request(a.held()[0].Ack, []byte("-NAK"), time.Minute)
	require.NoError(t, err)
	w.says(a, "message a came again while its entry is here")
	held := a.held()
	require.Len(t, held, 1)
	assert.EqualValues(t, 2, held[0].Copy)
	raw, err := os.ReadFile(a.inbox)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(raw), "\n"))
	w.open()
	w.settled(a, "a")
	w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
	assert.Equal(t, []string{"a"}, w.turns())
	w.repliesTo("a", w.known("a"))
}

func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.hold()
	a := w.start("one", nil, "--drain-on", "TERM")
	w.send("a", "b")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	a.term()
	w.eventually("it drains", func() bool { return strings.Contains(a.said(), "draining") }, a)
	w.open()
	assert.Zero(t, a.ended(), a.said())
	assert.EqualValues(t, 1, w.waiting())
	assert.Equal(t, 1, w.replied("a"))
	assert.Nil(t, w.known("b"))

	_, err := w.l.Agents.Put(fleet.Context(t), message.DrainKey("two"), []byte("1"))
	require.NoError(t, err)
	b := w.start("two", nil)
	assert.Zero(t, b.ended(), b.said())
	assert.EqualValues(t, 1, w.waiting())

	c := w.start("three", nil)
	w.settled(c, "b")
	_, err = w.l.Agents.Put(fleet.Context(t), message.DrainKey("three"), []byte("1"))
	require.NoError(t, err)
	assert.Zero(t, c.ended(), c.said())
}

func TestWhatWaitsGoesBackAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	a := w.start("one", nil, "--slots", "2", "--no-session")
	w.send("a", "b")
	w.eventually("both are held", func() bool { return len(a.held()) == 2 }, a)
	a.term()
	assert.Equal(t, 128+int(syscall.SIGTERM), a.ended())
	assert.Empty(t, a.held())
	b := w.start("two", nil)
	w.settled(b, "a", "b")
	assert.Equal(t, 1, w.known("a").Attempts)
}

func TestABackOffGivesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	a := w.start("one", nil, "--no-session")
	b := w.start("two", nil, "--no-session")
	w.send("a")
	var holder, other *running
	w.eventually("it is held", func() bool {
		holder, other = a, b
		if len(b.held()) == 1 {
			holder, other = b, a
		}
		return len(holder.held()) == 1
	}, a, b)
	box, err := inbox.Open(holder.inbox, inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(fleet.Context(t))
	require.NoError(t, err)
	_, err = tx.Holds().BackOff(time.Hour, 1, true, &inbox.Failure{Error: "rate_limit", At: time.Now()})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())
	w.eventually("the other has it", func() bool { return len(other.held()) == 1 && len(holder.held()) == 0 }, a, b)
}

func TestWhatCannotBeAnEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	a := w.start("one", nil, "--no-session")
	w.sendText("empty", " ")
	w.sendText("bytes", "a\xff")
	w.settled(a, "empty", "bytes")
	for _, id := range []string{"empty", "bytes"} {
		assert.Equal(t, upstream.WasDead, w.known(id).Outcome)
		m, err := w.l.Dead.GetLastMsgForSubject(fleet.Context(t), message.DeadSubject("WORK", id))
		require.NoError(t, err)
		if id == "bytes" {
			assert.Equal(t, "a\xff", string(m.Data))
		}
	}
	w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
	_, err := os.Stat(a.inbox)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// Somebody else has sent another text to the inbox under the message's id: its answer is not
// the message's.
func TestAnIDThatTheInboxHasWithAnotherText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	_, err = box.Append(fleet.Context(t), inbox.Message{ID: "job", Text: "mine"}, 0)
	require.NoError(t, err)
	tx, err := box.Begin(fleet.Context(t))
	require.NoError(t, err)
	next, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	_, err = tx.Deliver(next, inbox.Recipient{})
	require.NoError(t, err)
	require.NoError(t, tx.Acknowledge("my answer"))
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())

	w.sendText("job", "theirs")
	a := w.startAt(w.server.URL(), path, "one", nil, "--no-session")
	w.settled(a, "job")
	assert.Equal(t, upstream.WasDead, w.known("job").Outcome)
	m, err := w.l.Dead.GetLastMsgForSubject(fleet.Context(t), message.DeadSubject("WORK", "job"))
	require.NoError(t, err)
	assert.Equal(t, "theirs", string(m.Data))
	w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
	assert.Equal(t, map[string]int{"job": 1}, a.results(), "the other one's answer stays")
}

func TestPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.send("a")
	c, err := w.js.Consumer(fleet.Context(t), "WORK", w.consumer().Name)
	require.NoError(t, err)
	for range 5 { // attempts of agents that were killed
		m, err := c.Next(jetstream.FetchMaxWait(time.Minute))
		require.NoError(t, err)
		w.takes("killed", m)
		require.NoError(t, m.Nak())
	}
	a := w.start("one", nil)
	w.settled(a, "a")
	assert.Equal(t, upstream.WasDead, w.known("a").Outcome)
	assert.Equal(t, "max deliver", w.known("a").Reason)
	assert.Empty(t, w.turns())
}

func TestAnInboxOfAnotherAgentIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	a := w.start("one", nil, "--no-session")
	w.send("a")
	w.eventually("it is held", func() bool { return len(a.held()) == 1 }, a)
	b := w.startAt(w.server.URL(), a.inbox, "two", nil, "--no-session")
	assert.Equal(t, 1, b.ended())
	assert.Contains(t, b.said(), "another agent works on this inbox")
	a.kill()
	b = w.startAt(w.server.URL(), a.inbox, "two", nil, "--no-session")
	assert.Equal(t, 1, b.ended())
	assert.Contains(t, strings.Join(strings.Fields(b.said()), " "), `holds messages of agent "one"`)
}

func TestANameThatAnotherAgentHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	a := w.start("one", nil, "--no-session")
	w.eventually("its presence", func() bool {
		_, err := w.l.Agents.Get(fleet.Context(t), message.AgentKey("one"))
		return err == nil
	}, a)
	b := w.startAt(w.server.URL(), filepath.Join(t.TempDir(), "inbox.jsonl"), "one", nil, "--no-session")
	assert.Equal(t, 1, b.ended())
	assert.Contains(t, b.said(), "give this one another name")
	a.term()
	a.ended()
	c := w.startAt(w.server.URL(), b.inbox, "one", nil, "--no-session")
	w.send("a")
	w.eventually("it works", func() bool { return len(c.held()) == 1 }, c)
}

func TestAServerThatRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10*time.Second)
	w.hold()
	a := w.start("one", nil)
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	w.server.Stop()
	w.open()
	w.eventually("an answer", func() bool { return a.results()["a"] == 1 }, a)
	require.NoError(t, w.server.Resume())
	w.settled(a, "a")
	w.send("b")
	w.settled(a, "b")
	assert.Equal(t, []string{"a", "b"}, w.turns())
}

// A server that was away for longer than AckWait hands everything out again. Who works on it already goes on.
func TestAServerThatIsAwayForLong(t *testing.T) {
	t.Parallel()
	const ackWait = 15 * time.Second // in which a slow agent is connected again
	w := newWorld(t, ackWait)
	w.hold()
	a := w.start("one", nil)
	w.send("a")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	b := w.start("two", nil)
	w.says(b, "agent two takes messages")
	w.eventually("that others know what it holds", func() bool {
		e, err := w.l.Agents.Get(fleet.Context(t), message.AgentKey("one"))
		return err == nil && strings.Contains(string(e.Value()), message.InFlight)
	}, a)
	w.server.Stop()
	time.Sleep(ackWait + 2*time.Second)
	require.NoError(t, w.server.Resume())
	back := time.Now()
	w.eventually("that it is heard again", func() bool {
		e, err := w.l.Agents.Get(fleet.Context(t), message.AgentKey("one"))
		return err == nil && e.Created().After(back)
	}, a, b)
	w.open()
	w.settled(a, "a")
	assert.Equal(t, []string{"a"}, w.turns())
	assert.Equal(t, 1, w.replied("a"))
}

// The first message of a stream that was made anew is another one.
func TestAStreamThatIsMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	a := w.start("one", nil)
	w.publish("first", nil)
	w.eventually("the first turn", func() bool { return len(w.turns()) == 1 }, a)
	w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 && w.waiting() == 0 }, a)
	require.NoError(t, w.js.DeleteStream(fleet.Context(t), "WORK"))
	w.setUp(30 * time.Second)
	w.publish("second", nil)
	w.eventually("an empty stream", func() bool { return w.waiting() == 0 }, a)
	assert.Equal(t, []string{"first", "second"}, w.turns())
	assert.Len(t, a.results(), 2)
}

func TestALauncherThatCannotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	a := w.start("one", nil, "--launch", "--no-such-flag")
	w.send("a")
	assert.Equal(t, 1, a.ended(), a.said())
	assert.Contains(t, a.said(), "no-such-flag")
	assert.Empty(t, a.held())
	assert.EqualValues(t, 1, w.waiting())
	assert.NoFileExists(t, filepath.Join(w.gate, "turns"))
}
