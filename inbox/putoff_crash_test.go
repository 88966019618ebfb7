package inbox_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/crash"
)

// After a kill or a power loss at any call that brings it back, an entry that was put off is in one
// place, once, and its attempt is known.
func TestPutOffComesBackAtEveryCall(t *testing.T) {
	then := noon.AddDate(-6, 0, 0)
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			path := filepath.Join(dir, "inbox.jsonl")
			write(t, path, "one\ntwo\n")
			box, err := inbox.Open(path, inbox.Options{Now: func() time.Time { return then }})
			require.NoError(t, err)
			deliver(t, box)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", then.Add(time.Hour))) })
		},
		Run: func(dir string) crash.Command {
			return crash.Command{Name: "promote", Args: []string{filepath.Join(dir, "inbox.jsonl")}}
		},
	}
	check := func(t *testing.T, c crash.Crash) {
		box := open(t, filepath.Join(c.Dir, "inbox.jsonl"))
		for range 2 {
			in(t, box, func(*inbox.Tx) {})
			assert.Empty(t, scheduledIDs(t, box))
		}
		two, one := deliver(t, box), inbox.Entry{}
		acknowledge(t, box, "done")
		one = deliver(t, box)
		acknowledge(t, box, "done")
		assert.Equal(t, []any{"two", 1, "one", 2}, []any{two.Text, two.Attempt, one.Text, one.Attempt})
		assert.Empty(t, drain(t, box))
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("power loss", func(t *testing.T) {
		s.EveryPowerLoss(t, 1, 2, func(t *testing.T, c crash.Crash) {
			reboot(t, "after the power loss")
			check(t, c)
		})
	})
}

// sendSelf appends an agent's message.
func sendSelf(box *inbox.Inbox) error {
	_, err := box.AppendSelf(context.Background(), inbox.Message{ID: "next", Text: "go on"}, time.Minute, 5)
	return err
}

// After a kill or a power loss at any call, an agent's message counts if and only if it is there.
// Sending it again counts it once.
func TestAppendSelfAtEveryCall(t *testing.T) {
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) { write(t, filepath.Join(dir, "inbox.jsonl"), "one\n") },
		Run: func(dir string) crash.Command {
			return crash.Command{Name: "self", Args: []string{filepath.Join(dir, "inbox.jsonl")}}
		},
	}
	check := func(t *testing.T, c crash.Crash) {
		box := open(t, filepath.Join(c.Dir, "inbox.jsonl"))
		in(t, box, func(*inbox.Tx) {})
		assert.EqualValues(t, len(waitingIDs(t, box))-1, selfEnqueued(t, box))
		require.NoError(t, sendSelf(box))
		assert.Equal(t, []string{"", "next"}, waitingIDs(t, box))
		assert.EqualValues(t, 1, selfEnqueued(t, box))
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("power loss", func(t *testing.T) {
		s.EveryPowerLoss(t, 1, 2, func(t *testing.T, c crash.Crash) {
			reboot(t, "after the power loss")
			check(t, c)
		})
	})
}

func selfEnqueued(t testing.TB, box *inbox.Inbox) int64 {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	return v.SelfEnqueued().Count
}
