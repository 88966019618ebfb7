package inbox_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// Setting many entries aside costs one sync of each file and commit, and others get the lock in between.
func TestManySetAside(t *testing.T) {
	const count = 2500
	box := newBox(t, strings.Repeat(`{"prompt":"x","expires_at":"2020-01-01T00:00:00Z"}`+"\n", count)+"last\n")
	var aside []inbox.SetAside
	transactions := 0
	for more := true; more; transactions++ {
		syncs := map[string]int{}
		stop := crash.Observe(t, func(op disk.Op) error {
			if op.Kind == disk.OpSync {
				syncs[op.Path]++
			}
			return nil
		})
		in(t, box, func(tx *inbox.Tx) {
			e, err := tx.Next(inbox.Mark{})
			if more = err != nil; more {
				require.ErrorIs(t, err, inbox.ErrMore)
			} else {
				assert.Equal(t, "last", e.Text)
			}
			assert.Empty(t, tx.Warnings())
			aside = inbox.AddSetAside(aside, tx.SetAside()...)
		})
		stop()
		assert.Equal(t, 1, syncs[box.DeadLetterPath()])
	}
	assert.Equal(t, 3, transactions)
	require.Len(t, aside, 1)
	all := letters(t, box)
	assert.Equal(t, "2500 entries, the first of them "+all[0].EntryID[:12]+", are dead letters, expired", aside[0].String())
	require.Len(t, all, count)
	for i, l := range all {
		assert.EqualValues(t, 51*i, l.StartOffset)
	}
}
