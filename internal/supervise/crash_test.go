package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/script"
	recovery "heartbeat/recover"
)

// A child of these tests settles what a session left, as the launcher does between
// two sessions.
func TestMain(m *testing.M) {
	crash.Main(m, map[string]func() int{"settle": func() int {
		r, err := leftIn(os.Args[1])
		if err == nil {
			_, err = r.settle(context.Background())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		crash.Promise("settled")
		return 0
	}})
}

// started is the time of every settling in this process: a back-off does not end while
// the tests go on.
var started = time.Now()

func leftIn(dir string) (*run, error) {
	box, err := inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{Now: func() time.Time { return started }})
	return &run{box: box, Options: Options{
		Mode: Drain, Settings: recovery.Settings{Chosen: true, Policy: recovery.DeadLetter, MaxAttempts: 1},
	}}, err
}

// left is what a session may leave, and what must become of it.
type left struct {
	leave   func(*inbox.Tx) error
	next    string
	letters map[inbox.Reason]int64
	held    bool
}

var leftovers = map[string]left{
	"orphan":                                 {func(*inbox.Tx) error { return nil }, "two", map[inbox.Reason]int64{inbox.ReasonOrphaned: 1}, false},
	"orphan of a launcher that was stopping": {func(tx *inbox.Tx) error { return tx.Holds().BeginStop() }, "two", map[inbox.Reason]int64{inbox.ReasonOrphaned: 1}, false},
	"overload": {
		func(tx *inbox.Tx) error { return tx.In("s").Fail("server_error", "API Error: 529 Overloaded") }, "one", nil, true,
	},
	"refused": {
		func(tx *inbox.Tx) error { return tx.In("s").Fail("unknown", "API Error: 400 no") }, "two",
		map[inbox.Reason]int64{inbox.ReasonExhausted: 1}, true,
	},
	"not logged in": {
		func(tx *inbox.Tx) error { return tx.In("s").Fail("authentication_failed", "401") }, "one", nil, true,
	},
}

func (l left) scenario() crash.Scenario {
	return crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "inbox.jsonl"), []byte("one\ntwo\n"), 0o600))
			r, err := leftIn(dir)
			require.NoError(t, err)
			tx, err := r.box.Begin(t.Context())
			require.NoError(t, err)
			require.NoError(t, errors.Join(deliver(tx), l.leave(tx), tx.Commit(), tx.Close()))
		},
		Run: func(dir string) crash.Command { return crash.Command{Name: "settle", Args: []string{dir}} },
	}
}

// check settles as the next launcher does, more than once: the outcome is the same.
func (l left) check(t *testing.T, c crash.Crash) {
	r, err := leftIn(c.Dir)
	require.NoError(t, err)
	var st state
	for range 2 {
		st, err = r.settle(t.Context())
		require.NoError(t, err)
	}
	assert.True(t, st.waits)
	assert.Nil(t, st.Stopping)
	assert.Equal(t, l.held, st.Paused != nil || st.Backoff != nil)
	totals, err := readTotals(r.box)
	require.NoError(t, err)
	if l.letters == nil {
		l.letters = map[inbox.Reason]int64{}
	}
	assert.Equal(t, len(l.letters), len(totals.DeadLetters))
	for reason, n := range l.letters {
		assert.Equal(t, n, totals.DeadLetters[reason], reason)
	}
	letters, _, err := script.Letters(r.box)
	require.NoError(t, err)
	assert.Len(t, letters, len(l.letters))
	tx, err := r.box.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	e, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	assert.Equal(t, l.next, e.Text)
}

func TestSettleAtEveryCall(t *testing.T) {
	for name, l := range leftovers {
		t.Run("kill "+name, func(t *testing.T) { l.scenario().EveryKill(t, l.check) })
		t.Run("power loss "+name, func(t *testing.T) {
			l.scenario().EveryPowerLoss(t, 1, 3, func(t *testing.T, c crash.Crash) {
				machine.TestOnlyBootID = "the next boot"
				defer func() { machine.TestOnlyBootID = "" }()
				l.check(t, c)
			})
		})
		t.Run("full disk "+name, func(t *testing.T) {
			l.scenario().EveryFail(t, unix.ENOSPC, func(t *testing.T, c crash.Crash) {
				if c.Result.ExitCode != 0 {
					assert.NotEmpty(t, c.Result.Stderr, "it failed without a sentence")
				}
				l.check(t, c)
			})
		})
	}
}
