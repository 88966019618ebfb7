package worker_test

import (
	"cmp"
	"encoding/json"
	"errors"
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
	"heartbeat/internal/testing/fleet"
	recovery "heartbeat/recover"
)

// An agent that cannot write must not use up the attempts of every message of the stream.
func TestAnAgentThatCannotWriteItsLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	a := w.start("one", nil)
	w.eventually("it is there", func() bool { return w.presence("one") != nil }, a)
	ledger := filepath.Join(filepath.Dir(a.inbox), upstream.FileName)
	require.NoError(t, os.Remove(ledger))
	require.NoError(t, os.MkdirAll(filepath.Join(ledger, "in the way"), 0o700))
	w.send("a", "b")
	// AckWait is an hour: only what was given back comes again.
	w.eventually("it came again, and was given back", func() bool {
		l := w.lease("a")
		return l != nil && l.Copy > 2 && l.Attempt <= 1
	}, a)
	w.eventually("it says why", func() bool {
		p := w.presence("one")
		return p != nil && p.HeldUp != ""
	}, a)
	assert.Contains(t, w.presence("one").HeldUp, "it cannot take messages")
	require.NoError(t, os.RemoveAll(ledger))
	w.settled(a, "a", "b")
	for _, id := range []string{"a", "b"} {
		assert.Equal(t, upstream.WasAnswered, w.known(id).Outcome)
	}
	w.eventually("it is well", func() bool { return w.presence("one").HeldUp == "" }, a)
}

// An agent whose requests the server refuses is not one that waits for a message.
func TestAnAgentThatMayNotAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	limited := w.consumer().Config
	limited.MaxRequestExpires = time.Second
	_, err := w.js.UpdateConsumer(fleet.Context(t), "WORK", limited)
	require.NoError(t, err)
	a := w.start("one", nil)
	w.send("a")
	w.eventually("it says why", func() bool {
		p := w.presence("one")
		return p != nil && strings.Contains(p.HeldUp, "no message can be asked for: nats: Exceeded MaxRequestExpires")
	}, a)
	w.setUp(time.Minute)
	w.settled(a, "a")
	w.eventually("it is well", func() bool { return w.presence("one").HeldUp == "" }, a)
	w.says(a, "messages can be asked for again")
}

// Of a message whose sessions end before they begin others see why it waits, until its agent has given it back.
func TestAnAgentWhoseSessionsDoNotBegin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\nexit 3\n"), 0o700))
	a := w.start("one", []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")})
	w.send("a")
	w.eventually("it says why", func() bool {
		p := w.presence("one")
		return p != nil && strings.Contains(p.HeldUp, "1 entry waits, and the launcher, process ")
	}, a)
	require.NoError(t, a.Process.Signal(syscall.SIGTERM))
	a.ended()
	p := w.presence("one")
	require.True(t, p.Ended)
	assert.Empty(t, p.Holds)
	assert.Empty(t, p.HeldUp)
	assert.Zero(t, p.Waiting)
}

// lease is who holds a message, nil for nobody yet.
func (w *world) lease(id string) *upstream.Lease {
	e, err := w.l.Results.Get(fleet.Context(w.t), message.LeaseKey(id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	require.NoError(w.t, err)
	var l upstream.Lease
	require.NoError(w.t, json.Unmarshal(e.Value(), &l))
	return &l
}

// presence is what an agent says of itself, nil if it has said nothing.
func (w *world) presence(name string) *message.Presence {
	e, err := w.l.Agents.Get(fleet.Context(w.t), "agent."+name)
	if err != nil {
		return nil
	}
	p, err := message.ParsePresence(e.Value())
	require.NoError(w.t, err)
	return &p
}

func TestAnInboxThatIsFullOfEntriesOfOthersIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	_, err = box.Append(fleet.Context(t), inbox.Message{ID: "mine", Text: "mine"}, 0)
	require.NoError(t, err)
	w.send("a")
	a := w.startAt(w.server.URL(), path, "one", nil, "--no-session")
	w.eventually("it says why", func() bool {
		p := w.presence("one")
		return p != nil && p.HeldUp == "its inbox has entries of others: it takes no message while one is there (--queue-depth)" && !p.Busy
	}, a)
	tx, err := box.Begin(fleet.Context(t))
	require.NoError(t, err)
	e, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	_, err = tx.Deliver(e, inbox.Recipient{SessionID: "mine"})
	require.NoError(t, errors.Join(err, tx.Commit(), tx.Close()))
	w.eventually("it works on that", func() bool { p := w.presence("one"); return p.HeldUp != "" && p.Busy }, a)
}

// An entry that somebody drops has no outcome to tell, and must not keep its message for
// good.
func TestAnEntryThatIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	a := w.start("one", nil, "--no-session")
	w.send("a")
	w.eventually("it is held", func() bool { return len(a.held()) == 1 }, a)
	box, err := inbox.Open(a.inbox, inbox.Options{})
	require.NoError(t, err)
	for dropped := 0; w.known("a") == nil; {
		tx, err := box.Begin(fleet.Context(t))
		require.NoError(t, err)
		if e, err := tx.Next(inbox.Mark{}); err == nil {
			_, err := tx.Deliver(e, inbox.Recipient{SessionID: "session"})
			require.NoError(t, err)
			require.NoError(t, tx.Drop())
			require.NoError(t, tx.Commit())
			dropped++
			require.LessOrEqual(t, dropped, 5)
		}
		require.NoError(t, tx.Close())
		time.Sleep(20 * time.Millisecond)
	}
	assert.Equal(t, "max deliver", w.known("a").Reason)
}

// A launcher that ends well, and leaves what waits, is not started again and again.
func TestALauncherThatDoesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	other := filepath.Join(t.TempDir(), "inbox.jsonl")
	a := w.start("one", nil, "--launch=--inbox="+other)
	w.send("a")
	w.eventually("others see why", func() bool {
		return strings.Contains(w.seen("one").HeldUp, "launchers ended without an answer")
	}, a)
	assert.Empty(t, w.turns())
}

// A turn that an error ended counts as an attempt although its message goes back to the stream for a long back-off: a
// text that no API answers does not go round for ever.
func TestAFailedTurnThatIsGivenBack(t *testing.T) {
	for name, putOff := range map[string]bool{"an error": false, "put off": true} {
		t.Run(name, func(t *testing.T) { givenBackAfterAFailedTurn(t, putOff) })
	}
}

func givenBackAfterAFailedTurn(t *testing.T, putOff bool) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	a := w.start("one", nil, "--no-session")
	w.send("a")
	w.eventually("it is held", func() bool { return len(a.held()) == 1 }, a)
	box, err := inbox.Open(a.inbox, inbox.Options{})
	require.NoError(t, err)
	failed := 0
	fail := func() (did bool) {
		tx, err := box.Begin(fleet.Context(t))
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Close()) }()
		require.NoError(t, tx.Holds().Resume())
		if e, err := tx.Next(inbox.Mark{}); err == nil {
			_, err := tx.Deliver(e, inbox.Recipient{SessionID: "session"})
			require.NoError(t, err)
			if later := time.Now().Add(time.Hour); putOff {
				require.NoError(t, tx.Say(inbox.Verdict{Kind: inbox.VerdictFailed, Text: "not now", Until: &later}))
			} else {
				require.NoError(t, tx.In("session").Fail("server_error", "it broke"))
			}
			report, err := recovery.Settle(tx, recovery.Asker{Box: box}, recovery.Sight{})
			require.NoError(t, err)
			require.Equal(t, recovery.Requeued, report.Action)
			_, err = tx.Holds().BackOff(time.Hour, 9, true, cmp.Or(report.Failure, &inbox.Failure{Error: "server_error"}))
			require.NoError(t, err)
			did = true
		}
		require.NoError(t, tx.Commit())
		return did
	}
	for w.known("a") == nil {
		if fail() {
			failed++
			w.eventually("it goes back", func() bool { return len(a.held()) == 0 }, a)
		}
		require.LessOrEqual(t, failed, 5)
		time.Sleep(20 * time.Millisecond) // until the agent has it again
	}
	assert.Equal(t, "max deliver", w.known("a").Reason)
}

// Such an agent takes no message for a while once --stall is over: each would wait there as long.
func TestAnAgentWhoseSessionsDoNotBeginRests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\nexit 3\n"), 0o700))
	one := w.start("one", []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}, "--stall", "5s")
	w.send("a", "b")
	w.eventually("it rests, and says why", func() bool {
		p := w.presence("one")
		if p != nil {
			assert.NotContains(t, p.HeldUp, "nothing moves", "the inbox is empty once it rests")
		}
		return p != nil && len(p.Holds) == 0 && strings.HasPrefix(p.HeldUp, "no session began for 5s, so it takes no message until ") && strings.Contains(p.HeldUp, "1 entry waits")
	}, one)
	assert.Empty(t, w.lease("a").Agent)
	w.settled(w.start("two", nil), "a", "b")
}
