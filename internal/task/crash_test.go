package task_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/task"
	"heartbeat/internal/testing/crash"
	recovery "heartbeat/recover"
)

func TestMain(m *testing.M) {
	machine.TestOnlyTrustAll = true // a power loss leaves copies
	crash.Main(m, map[string]func() int{"say": sayInChild})
}

// says are what an agent may say of its entry.
var says = map[string]func(context.Context, *inbox.Inbox, task.Caller) (task.Current, error){
	"done": func(ctx context.Context, box *inbox.Inbox, c task.Caller) (task.Current, error) {
		return task.Done(ctx, box, c, "42")
	},
	"failed": func(ctx context.Context, box *inbox.Inbox, c task.Caller) (task.Current, error) {
		return task.Fail(ctx, box, c, "not now", time.Hour)
	},
	"rejected": func(ctx context.Context, box *inbox.Inbox, c task.Caller) (task.Current, error) {
		return task.Reject(ctx, box, c, "it makes no sense")
	},
	"progress": func(ctx context.Context, box *inbox.Inbox, c task.Caller) (task.Current, error) {
		return task.Extend(ctx, box, c, time.Hour, "half of it")
	},
}

// sayInChild is a tool server: what it prints is what the agent was told.
func sayInChild() int {
	box, err := inbox.Open(os.Args[1], inbox.Options{})
	if err == nil {
		_, err = says[os.Args[2]](context.Background(), box, task.Caller{PID: os.Getpid()})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	crash.Promise("said")
	return 0
}

// Killed, or cut off from power, at whichever call: what the agent was told is kept holds,
// and whoever settles the entry settles it once, as was said or as if nothing was.
func TestSayAtEveryCall(t *testing.T) {
	for said := range says {
		s := crash.Scenario{
			Setup: func(t testing.TB, dir string) {
				path := filepath.Join(dir, "inbox.jsonl")
				require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
				box, err := inbox.Open(path, inbox.Options{})
				require.NoError(t, err)
				deliverTo(t, box, os.Getpid())
			},
			Run: func(dir string) crash.Command {
				return crash.Command{Name: "say", Args: []string{filepath.Join(dir, "inbox.jsonl"), said}}
			},
		}
		check := func(t *testing.T, c crash.Crash) { settledAsSaid(t, c, said) }
		t.Run(said+", kill", func(t *testing.T) { s.EveryKill(t, check) })
		t.Run(said+", power loss", func(t *testing.T) { s.EveryPowerLoss(t, 1, 2, check) })
	}
}

func settledAsSaid(t *testing.T, c crash.Crash, said string) {
	box, err := inbox.Open(filepath.Join(c.Dir, "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	var kept *inbox.Verdict
	var report recovery.Report
	in(t, box, func(tx *inbox.Tx) {
		d := tx.InFlight()
		require.NotNil(t, d, "saying something settles nothing")
		kept = d.Verdict
		if len(c.Promised) > 0 {
			assert.True(t, kept != nil && string(kept.Kind) == said || said == "progress" && d.Progress != nil, "the agent was told that it is kept")
		}
		var err error
		report, err = recovery.Settle(tx, recovery.Asker{Box: box, Client: inbox.ProcessOf(os.Getpid()), Settings: recovery.Settings{Policy: recovery.Retry, MaxAttempts: 3}}, recovery.Sight{Charged: true})
		require.NoError(t, err)
	})
	want := recovery.Requeued
	if kept != nil {
		want = map[inbox.VerdictKind]recovery.Action{
			inbox.VerdictDone: recovery.Answered, inbox.VerdictFailed: recovery.Requeued, inbox.VerdictRejected: recovery.DeadLettered,
		}[kept.Kind]
	}
	assert.Equal(t, want, report.Action)
	in(t, box, func(tx *inbox.Tx) { assert.Nil(t, tx.InFlight(), "it is settled once") })
}
