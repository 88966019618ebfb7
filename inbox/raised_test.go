package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/budget"
)

// Limits that count in place of those of the flags are believed of lines that were
// requeued with them: whoever may append to the inbox cannot lift the flags' limits.
func TestOnlyARequeueRaisesLimits(t *testing.T) {
	box := newBox(t, `{"prompt":"x","id":"x","limits":{"cost_usd":1000,"raised":true}}`+"\n")
	in(t, box, func(tx *inbox.Tx) {
		_, err := tx.Next(inbox.Mark{})
		require.ErrorIs(t, err, inbox.ErrEmpty)
	})
	all := letters(t, box)
	require.Len(t, all, 1)
	assert.Equal(t, inbox.ReasonLimits, all[0].Reason)
	assert.Contains(t, all[0].Failure.Message, "raised is what dead-letter requeue says")
	require.ErrorContains(t, box.Requeueable(all[0]), "give it some")

	higher, err := all[0].WithLimits(budget.Limits{Nanos: 2_000_000_000})
	require.NoError(t, err)
	requeue(t, box, higher)
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		limits, err := e.Limits()
		require.NoError(t, err)
		assert.Equal(t, budget.Limits{Nanos: 2_000_000_000, Raised: true}, limits)
	})
}
