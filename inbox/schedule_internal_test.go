package inbox

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A due entry that could not be moved does not count as moved: the next transaction tries again,
// and readers are told.
func TestWhatCouldNotBeMovedComesNext(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	box, err := Open(path, Options{Now: func() time.Time { return now }})
	require.NoError(t, err)
	due := now.Add(time.Hour)
	_, err = box.Append(context.Background(), Message{ID: "due", Text: "x", NotBefore: due}, 0)
	require.NoError(t, err)
	begin := func() *Tx {
		tx, err := box.Begin(context.Background())
		require.NoError(t, err)
		return tx
	}
	tx := begin()
	require.NoError(t, tx.In("s").Start(0, nil))
	require.NoError(t, tx.Commit())
	now = due
	require.NoError(t, tx.file.Close()) // makes reading the inbox's last line fail
	assert.ErrorContains(t, tx.promote(), "read inbox")
	require.NoError(t, tx.openFile())
	require.NoError(t, tx.In("s").Start(0, nil))
	require.NoError(t, tx.Commit(), "the error is no reason to stop the turn")
	require.NoError(t, tx.Close())

	require.NoError(t, begin().Close())
	all, err := box.Scheduled()
	require.NoError(t, err)
	assert.Empty(t, all)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(content), `"id":"due"`)

	require.NoError(t, os.Remove(box.ScheduledPath()))
	require.NoError(t, os.Mkdir(box.ScheduledPath(), 0o700))
	tx = begin()
	assert.Contains(t, tx.Warnings()[0], "keep waiting, and the next transaction tries again")
	assert.Equal(t, now.Add(promoteRetry), tx.NextDue().UTC(), "a hook that waits looks again")
	require.NoError(t, tx.Close())
}
