package recover_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

var policies = []recovery.Policy{recovery.DeadLetter, recovery.Retry, recovery.Drop}

// Corrupt state stops the launcher's cycle and stays there for inspection.
func TestCorruptStateIsLeftAlone(t *testing.T) {
	for name, spoil := range map[string]func(t testing.TB, box *inbox.Inbox){
		"in flight, empty":     func(t testing.TB, box *inbox.Inbox) { put(t, box, ".in-flight", "") },
		"in flight, truncated": func(t testing.TB, box *inbox.Inbox) { put(t, box, ".in-flight", `{"entry_id":"x","start_off`) },
		"cursor":               func(t testing.TB, box *inbox.Inbox) { put(t, box, ".inbox-offset", "-1") },
		"journal":              func(t testing.TB, box *inbox.Inbox) { put(t, box, ".inbox-journal", "a\nb\nc\n") },
	} {
		for _, policy := range policies {
			t.Run(name+" "+string(policy), func(t *testing.T) {
				box := newBox(t)
				live(t, box)
				spoil(t, box)
				before := files(t, box)
				_, err := recovery.Run(context.Background(), recovery.Asker{Box: box, Settings: recovery.Settings{Policy: policy}}, recovery.Sight{})
				require.ErrorIs(t, err, inbox.ErrCorrupt)
				assert.Equal(t, before, files(t, box))
			})
		}
	}
}

// Any number of recoveries at once have the effect of one.
func TestConcurrentRuns(t *testing.T) {
	for _, policy := range policies {
		t.Run(string(policy), func(t *testing.T) {
			box := newBox(t)
			live(t, box)
			actions := make([]recovery.Action, 16)
			errs := make([]error, len(actions))
			var done sync.WaitGroup
			for i := range actions {
				done.Go(func() {
					var report recovery.Report
					report, errs[i] = recovery.Run(context.Background(), recovery.Asker{Box: box, Settings: recovery.Settings{Policy: policy}}, recovery.Sight{})
					actions[i] = report.Action
				})
			}
			done.Wait()
			require.NoError(t, errors.Join(errs...))
			count := map[recovery.Action]int{}
			for _, a := range actions {
				count[a]++
			}
			want := expected["live"][policy]
			assert.Equal(t, map[recovery.Action]int{recovery.None: len(actions) - 1, want.action: 1}, count)
			assert.Equal(t, want.situation, situationOf(t, box))
		})
	}
}

// A recovery waits for the transaction of a live session.
func TestRunWaitsForTheLock(t *testing.T) {
	box := newBox(t)
	live(t, box)
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = recovery.Run(ctx, recovery.Asker{Box: box, Settings: recovery.Settings{}}, recovery.Sight{})
	require.ErrorIs(t, err, inbox.ErrLocked)

	action := make(chan recovery.Action, 1)
	go func() {
		report, err := recovery.Run(context.Background(), recovery.Asker{Box: box, Settings: recovery.Settings{}}, recovery.Sight{})
		if err != nil {
			report.Action = recovery.Action(err.Error())
		}
		action <- report.Action
	}()
	require.NoError(t, tx.Acknowledge("answered just in time"))
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())
	assert.Equal(t, recovery.None, <-action)
}

// Settle decides within a transaction that goes on to deliver.
func TestSettleThenDeliver(t *testing.T) {
	box := newBox(t)
	live(t, box)
	in(t, box, func(tx *inbox.Tx) error {
		report, err := recovery.Settle(tx, recovery.Asker{Box: box}, recovery.Sight{})
		require.NoError(t, err)
		assert.Equal(t, recovery.DeadLettered, report.Action)
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s2"})
		return err
	})
	s := situationOf(t, box)
	assert.True(t, s.InFlight)
	assert.Equal(t, "30", s.Cursor)
	assert.Len(t, s.DeadLetters, 1)
}

// A launcher truncates the inbox after the recovery. The entry that retry gave back is still
// delivered, before new ones.
func TestTruncatedAfterRetry(t *testing.T) {
	box := newBox(t)
	live(t, box)
	run(t, box, recovery.Settings{Policy: recovery.Retry}, recovery.Sight{})
	require.NoError(t, os.WriteFile(box.Path(), []byte("new\n"), 0o600))
	assert.Equal(t, "two", situationOf(t, box).Next)
	deliver(t, box, "s2")
	in(t, box, func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
	assert.Equal(t, "new", situationOf(t, box).Next)
}

// Recovery works before anything ever ran.
func TestNothingToRecover(t *testing.T) {
	box, err := inbox.Open(filepath.Join(t.TempDir(), "later.jsonl"), inbox.Options{})
	require.NoError(t, err)
	assert.Equal(t, recovery.Report{Action: recovery.None}, run(t, box, recovery.Settings{}, recovery.Sight{}))
	assert.NoFileExists(t, box.Path())
}

func TestReport(t *testing.T) {
	for _, c := range []struct {
		how     string
		options recovery.Settings
		sight   recovery.Sight
		want    recovery.Report
		says    string
	}{
		{"nothing in flight", recovery.Settings{}, recovery.Sight{}, recovery.Report{Action: recovery.None, Cursor: endOne}, "nothing was in flight"},
		{
			"live", recovery.Settings{}, recovery.Sight{},
			recovery.Report{
				Action: recovery.DeadLettered, ID: "2", Start: startTwo, End: endTwo, Attempt: 1, Session: "s1",
				Reason: inbox.ReasonOrphaned, Cursor: endTwo,
			},
			"the entry 2, attempt 1, is a dead letter (orphaned)",
		},
		{
			"live", recovery.Settings{Policy: recovery.Retry}, recovery.Sight{},
			recovery.Report{Action: recovery.Requeued, ID: "2", Start: startTwo, End: endTwo, Attempt: 1, Session: "s1", Cursor: startTwo},
			"the entry 2, attempt 1, will be delivered again",
		},
		{
			"live", recovery.Settings{Policy: recovery.Drop}, recovery.Sight{},
			recovery.Report{Action: recovery.Dropped, ID: "2", Start: startTwo, End: endTwo, Attempt: 1, Session: "s1", Cursor: endTwo},
			"the entry 2, attempt 1, is dropped",
		},
		{
			"a client's prompt, never handed to it", recovery.Settings{}, recovery.Sight{},
			recovery.Report{Action: recovery.Returned, ID: "2", Start: startTwo, End: endTwo, Attempt: 1, Session: "s1", Cursor: startTwo},
			"the entry 2, attempt 1, never arrived, and will be delivered again",
		},
		{
			"stale", recovery.Settings{}, recovery.Sight{},
			recovery.Report{Action: recovery.Cleared, ID: "2", Start: startTwo, End: endTwo, Attempt: 1, Session: "s1", Cursor: endTwo},
			"the entry 2, attempt 1, was answered before",
		},
	} {
		t.Run(c.how+" "+string(c.want.Action), func(t *testing.T) {
			box := newBox(t)
			found[c.how](t, box)
			got := run(t, box, c.options, c.sight)
			assert.True(t, strings.HasPrefix(got.String(), c.says), got.String())
			if c.want.ID != "" {
				assert.Len(t, got.EntryID, 64)
			}
			got.EntryID = ""
			assert.Equal(t, c.want, got)

			text, err := json.Marshal(got)
			require.NoError(t, err)
			var members map[string]any
			require.NoError(t, json.Unmarshal(text, &members))
			assert.Equal(t, string(c.want.Action), members["action"])
			assert.Equal(t, float64(c.want.Cursor), members["cursor"])
		})
	}
}

// The report includes warnings of other repairs.
func TestReportHasWarnings(t *testing.T) {
	box := newBox(t)
	found["detached"](t, box)
	assert.Len(t, run(t, box, recovery.Settings{}, recovery.Sight{}).Warnings, 1)
	assert.Empty(t, run(t, box, recovery.Settings{}, recovery.Sight{}).Warnings)
}
