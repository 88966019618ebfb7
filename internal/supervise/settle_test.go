package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/terminal"
	recovery "heartbeat/recover"
)

// newRun is a run on an inbox of two entries.
func newRun(t *testing.T, mode Mode) (*run, *inbox.Inbox) {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	return &run{box: box, Options: Options{
		Mode:      mode,
		Settings:  recovery.Settings{Chosen: true, Policy: recovery.DeadLetter, MaxAttempts: 2},
		Endurance: Endurance{UntilDrained: true},
	}}, box
}

func change(t *testing.T, box *inbox.Inbox, f func(*inbox.Tx) error) {
	t.Helper()
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	require.NoError(t, f(tx))
	require.NoError(t, tx.Commit())
}

func deliver(tx *inbox.Tx) error {
	e, err := tx.Next(inbox.Mark{})
	if err == nil {
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
	}
	return err
}

// An error of the API decides about the entry in place of the policy: an overload is not
// the entry's fault, however often it is met.
func TestSettleOverload(t *testing.T) {
	r, box := newRun(t, Drain)
	for range 5 {
		change(t, box, func(tx *inbox.Tx) error {
			return errors.Join(tx.Holds().Resume(), deliver(tx), tx.In("s").Fail("server_error", "API Error: 529 Overloaded"))
		})
		st, err := r.settle(t.Context())
		require.NoError(t, err)
		assert.True(t, st.waits)
		require.NotNil(t, st.Backoff)
		assert.Nil(t, r.endReason(st))
		assert.Positive(t, r.rest(st))
	}
	totals, err := readTotals(r.box)
	require.NoError(t, err)
	assert.Empty(t, totals.DeadLetters)
}

// An error that may be the entry's own uses its attempts up.
func TestSettleRefused(t *testing.T) {
	r, box := newRun(t, Drain)
	for range 2 {
		change(t, box, func(tx *inbox.Tx) error {
			return errors.Join(tx.Holds().Resume(), deliver(tx), tx.In("s").Fail("unknown", "API Error: 400 no"))
		})
		_, err := r.settle(t.Context())
		require.NoError(t, err)
	}
	totals, err := readTotals(r.box)
	require.NoError(t, err)
	assert.Equal(t, map[inbox.Reason]int64{inbox.ReasonExhausted: 1}, totals.DeadLetters)
}

// A limit that ends hours ahead is left to a later run while the inbox is drained.
func TestSettleLimit(t *testing.T) {
	r, box := newRun(t, Drain)
	change(t, box, func(tx *inbox.Tx) error {
		return errors.Join(deliver(tx), tx.In("s").Fail("rate_limit", "try again in 3 hours"))
	})
	st, err := r.settle(t.Context())
	require.NoError(t, err)
	e := r.endReason(st)
	require.NotNil(t, e)
	assert.Equal(t, BackingOff, e.reason)
	assert.Contains(t, e.detail, "rate_limit: try again in 3 hours")

	r.Mode = Persist
	assert.Nil(t, r.endReason(st), "its session waits")
	assert.LessOrEqual(t, r.rest(st), time.Duration(0))
}

// A turn of the session's own that fails holds delivery back, once.
func TestSettleOwnTurn(t *testing.T) {
	r, box := newRun(t, Drain)
	s := newSession(client.Of("", []string{"claude"}), terminal.DefaultSize)
	s.id.Store("s")
	r.last = s
	change(t, box, func(tx *inbox.Tx) error { return tx.In("s").FailAlone("server_error", "API Error: 503") })
	st, err := r.settle(t.Context())
	require.NoError(t, err)
	require.NotNil(t, st.Backoff)
	change(t, box, func(tx *inbox.Tx) error { return tx.Holds().Resume() })
	st, err = r.settle(t.Context())
	require.NoError(t, err)
	assert.Nil(t, st.Backoff)
}

// The dead letter of a session that was ended because it waited for a person says so.
func TestSettleAsked(t *testing.T) {
	r, box := newRun(t, Drain)
	r.last = newSession(client.Of("", []string{"claude"}), terminal.DefaultSize)
	r.last.end(verdict{asked: true, text: "it asked"})
	change(t, box, deliver)
	_, err := r.settle(t.Context())
	require.NoError(t, err)
	totals, err := readTotals(r.box)
	require.NoError(t, err)
	assert.Equal(t, map[inbox.Reason]int64{inbox.ReasonAsked: 1}, totals.DeadLetters)
}

// What a session did not answer that was ended by order is delivered again, however often
// it was before; the policy may also set it aside. Delivery goes on afterwards.
func TestSettleStopped(t *testing.T) {
	for policy, want := range map[recovery.Policy]map[inbox.Reason]int64{
		recovery.Retry: {}, recovery.DeadLetter: {inbox.ReasonStopped: 1}, recovery.Drop: {},
	} {
		r, box := newRun(t, Persist)
		r.Settings.Policy = policy
		for range 3 { // more than the attempts that it has
			change(t, box, func(tx *inbox.Tx) error { return errors.Join(deliver(tx), tx.Holds().BeginStop()) })
			r.last = newSession(client.Of("", []string{"claude"}), terminal.DefaultSize)
			r.last.cutShort = true
			st, err := r.settle(t.Context())
			require.NoError(t, err)
			assert.Nil(t, st.Stopping)
			if policy != recovery.Retry {
				break
			}
		}
		totals, err := readTotals(r.box)
		require.NoError(t, err)
		if len(want) == 0 {
			assert.Empty(t, totals.DeadLetters)
		} else {
			assert.Equal(t, want, totals.DeadLetters)
		}
	}
}

// A session that has an entry and prints nothing does not count as going on, unless it
// waits for a person.
func TestGoesOn(t *testing.T) {
	r, _ := newRun(t, Persist)
	r.follow = &follower{}
	assert.True(t, r.isProgressing(), "between two sessions")
	s := newSession(client.Of("", []string{"claude"}), terminal.DefaultSize)
	r.current.Store(s)
	assert.True(t, r.isProgressing(), "it idles")
	r.follow.inFlight = &inbox.Delivery{}
	assert.False(t, r.isProgressing())
	s.printed([]byte("x"))
	assert.True(t, r.isProgressing())
	assert.False(t, r.isProgressing(), "it has printed nothing since")
	s.asks.Store(true)
	assert.True(t, r.isProgressing())
}
