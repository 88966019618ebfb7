package recover_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	recovery "heartbeat/recover"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/budget"
	"heartbeat/internal/price"
	"heartbeat/orchestrate/effect"
)

func spent(nanos int64) price.Amount { return price.Amount{Nanos: nanos, Dollars: true, Requests: 1} }

// All entries of a run count towards its limit, and those of others do not.
func TestRunLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	mark := `,"` + effect.MetaRunDir + `":"/runs/r1","` + effect.MetaEffect + `":"e"}`
	require.NoError(t, os.WriteFile(path, []byte(
		`{"prompt":"a","id":"r1/e1"`+mark+"\n"+
			`{"prompt":"other","id":"r10/e1"`+mark+"\n"+
			`{"prompt":"plain","id":"r1"}`+"\n"+
			`{"prompt":"b","id":"r1/e2"`+mark+"\n"), 0o600))
	inbox.TestOnlyTrustAll = true
	t.Cleanup(func() { inbox.TestOnlyTrustAll = false })
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	asker := recovery.Asker{Box: box, Elsewhere: func(inbox.Entry) (string, error) { return "", nil }}
	asker.Limits.Run = 10
	for _, c := range []struct {
		id      string
		cost    int64
		refused bool
	}{{"r1/e1", 12, false}, {"r10/e1", 5, false}, {"r1", 7, false}, {"r1/e2", 0, true}} {
		tx, err := box.Begin(context.Background())
		require.NoError(t, err)
		e, err := recovery.Next(tx, asker, inbox.Mark{})
		if c.refused {
			require.ErrorIs(t, err, inbox.ErrEmpty)
		} else {
			require.NoError(t, err)
			require.Equal(t, c.id, e.ID)
			tx.Position("s-"+c.id, 0, inbox.TurnUnknown)
			_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s-" + c.id})
			require.NoError(t, err)
			require.NoError(t, tx.Charge(inbox.Reading{Session: "s-" + c.id, Meter: "m", Spent: spent(c.cost), Over: true}))
			require.NoError(t, tx.Acknowledge("done"))
		}
		require.NoError(t, tx.Commit())
		require.NoError(t, tx.Close())
	}
	letters, _, err := box.Letters()
	require.NoError(t, err)
	require.Len(t, letters, 1)
	assert.Equal(t, inbox.ReasonOverBudget, letters[0].Reason)
	run, is := letters[0].OverRun()
	assert.True(t, is)
	assert.Equal(t, "r1", run)
	assert.Equal(t, "r1/e2", letters[0].ID)
	assert.Contains(t, letters[0].Failure.Message, "its run cost ")

	// A person may have it go on.
	with, err := letters[0].WithLimits(budget.Limits{Nanos: 100})
	require.NoError(t, err)
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	_, err = tx.Requeue(with, inbox.Mark{})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	e, err := recovery.Next(tx, asker, inbox.Mark{})
	require.NoError(t, err)
	assert.Equal(t, "r1/e2", e.ID)
	require.NoError(t, tx.Close())
}
