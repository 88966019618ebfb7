package recover_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/price"
	"heartbeat/internal/testing/script"
	recovery "heartbeat/recover"
)

// limited returns an inbox with these lines, and a function that runs a transaction.
func limited(t *testing.T, lines string) (box *inbox.Inbox, in func(func(tx *inbox.Tx))) {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	return box, func(f func(tx *inbox.Tx)) {
		tx, err := box.Begin(t.Context())
		require.NoError(t, err)
		f(tx)
		require.NoError(t, tx.Commit())
		require.NoError(t, tx.Close())
	}
}

func lettersOf(t *testing.T, box *inbox.Inbox) []inbox.Letter {
	all, warnings, err := script.Letters(box)
	require.NoError(t, err)
	require.Empty(t, warnings)
	return all
}

// An entry whose limits cannot be parsed is set aside with the reason, and the next entry is delivered.
func TestInvalidLimits(t *testing.T) {
	box, in := limited(t, `{"prompt":"a","id":"a","limits":{"cost_usd":-1}}`+"\n"+`{"prompt":"b","id":"b","limits":{"cost_usd":2.5}}`+"\n")
	v, err := box.View()
	require.NoError(t, err)
	waits, err := v.Next(2)
	require.NoError(t, err)
	assert.Error(t, recovery.InvalidLimits(waits[0].Entry, account.Of(v).IsRaised))
	assert.NoError(t, recovery.InvalidLimits(waits[1].Entry, account.Of(v).IsRaised))
	require.NoError(t, v.Close())

	in(func(tx *inbox.Tx) {
		e, err := recovery.Next(tx, recovery.Asker{}, inbox.Mark{})
		require.NoError(t, err)
		assert.Equal(t, "b", e.ID)
		limits, err := price.ParseLimits(e.Limits())
		require.NoError(t, err)
		assert.Equal(t, price.Limits{Nanos: 2_500_000_000}, limits)
	})
	all := lettersOf(t, box)
	require.Len(t, all, 1)
	assert.Equal(t, inbox.ReasonLimits, all[0].Reason)
	assert.Equal(t, `limits: cost_usd: "-1" is negative: give dollars above 0, such as 2.50`, all[0].Failure.Message)
	assert.ErrorContains(t, box.Requeueable(all[0]), "it would be set aside again: give it others")
}

// Limits that replace those of the flags count only in lines that were requeued with them: whoever
// may append to the inbox cannot lift the flags' limits.
func TestOnlyARequeueRaisesLimits(t *testing.T) {
	box, in := limited(t, `{"prompt":"x","id":"x","limits":{"cost_usd":1000,"raised":true}}`+"\n")
	in(func(tx *inbox.Tx) {
		_, err := recovery.Next(tx, recovery.Asker{}, inbox.Mark{})
		require.ErrorIs(t, err, inbox.ErrEmpty)
	})
	all := lettersOf(t, box)
	require.Len(t, all, 1)
	assert.Equal(t, inbox.ReasonLimits, all[0].Reason)
	assert.Contains(t, all[0].Failure.Message, "raised is what dead-letter requeue says")
	require.ErrorContains(t, box.Requeueable(all[0]), "give it others")

	raised := price.Limits{Nanos: 2_000_000_000, Raised: true}
	higher, err := all[0].WithLimits(raised.JSON())
	require.NoError(t, err)
	in(func(tx *inbox.Tx) {
		_, err := tx.Requeue(higher, inbox.Mark{})
		require.NoError(t, err)
	})
	in(func(tx *inbox.Tx) {
		e, err := recovery.Next(tx, recovery.Asker{}, inbox.Mark{})
		require.NoError(t, err)
		limits, err := price.ParseLimits(e.Limits())
		require.NoError(t, err)
		assert.Equal(t, raised, limits)
	})
}
