package session

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
)

// The sessions of a host are those that start while it runs, whatever the clock says of that.
func TestFindSessionsWhenTheClockIsSet(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	box, err := inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{Now: func() time.Time { return now }})
	require.NoError(t, err)
	transcript := func(id string) string { return filepath.Join(dir, id+".jsonl") }
	start := func(id string) {
		require.NoError(t, os.WriteFile(transcript(id), []byte("{}\n"), 0o600))
		tx, err := box.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, tx.In(id).Start(os.Getpid(), agent.StartNote(transcript(id), false)))
		require.NoError(t, tx.Commit())
		require.NoError(t, tx.Close())
	}
	start("old")
	start("resumed")
	f := &follower{box: box, old: map[string]bool{}}
	f.find(nil)
	now = now.Add(-time.Hour)
	start("new")
	start("resumed")
	read := map[string]int64{}
	f.find(read)
	assert.Equal(t, map[string]int64{transcript("new"): 3, transcript("resumed"): 3}, read)
}
