package inbox_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
)

func stopping(t *testing.T, box *inbox.Inbox) *inbox.Stopping {
	t.Helper()
	tx := begin(t, box)
	defer func() { require.NoError(t, tx.Close()) }()
	s, err := tx.Holds().Stopping()
	require.NoError(t, err)
	return s
}

// A process that is about to end counts as stopping until it says otherwise, whatever is committed
// meanwhile, and only while it lives.
func TestStopping(t *testing.T) {
	box := newBox(t, oldContent)
	assert.Nil(t, stopping(t, box))
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Holds().BeginStop()) })
	in(t, box, func(tx *inbox.Tx) {
		_, err := tx.Holds().Pause("a person's", nil)
		require.NoError(t, err)
	})
	s := stopping(t, box)
	require.NotNil(t, s)
	assert.Equal(t, os.Getpid(), s.PID)

	machine.TestOnlyBootID = "the next boot"
	gone := stopping(t, box)
	machine.TestOnlyBootID = ""
	assert.Nil(t, gone, "a process of another boot has ended")

	in(t, box, func(tx *inbox.Tx) { tx.Holds().EndStop() })
	assert.Nil(t, stopping(t, box))
	tx := begin(t, box)
	tx.Holds().EndStop()
	assert.False(t, tx.Dirty(), "nobody is about to end")
	paused, err := tx.Holds().Paused()
	require.NoError(t, err)
	assert.NotNil(t, paused)
	require.NoError(t, tx.Close())
}
