package inbox_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
)

// strict trusts only state that was written here.
func strict(t *testing.T) {
	t.Helper()
	machine.TestOnlyTrustAll = false
	t.Cleanup(func() { machine.TestOnlyTrustAll = true })
}

const forged = `{"entry_id":"e","id":"job-1","start_offset":0,"end_offset":4,"attempt":1,"acknowledged_at":"2026-01-01T00:00:00Z","reply":"forged"}` + "\n"

// worked returns an inbox of ours with an answered entry, a scheduled one and an event.
func worked(t *testing.T) *inbox.Inbox {
	t.Helper()
	box := newBox(t, "")
	_, err := box.Append(t.Context(), inbox.Message{ID: "job-1", Text: "one"}, 0)
	require.NoError(t, err)
	_, err = box.Append(t.Context(), inbox.Message{ID: "later", Text: "later", NotBefore: time.Now().Add(100 * time.Hour)}, 0)
	require.NoError(t, err)
	drain(t, box)
	return box
}

// brought returns a copy of a directory as git or `cp -r` leaves it elsewhere.
func brought(t *testing.T, from string, keepTimes bool) *inbox.Inbox {
	t.Helper()
	dir := t.TempDir()
	files, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		write(t, path, read(t, filepath.Join(from, f.Name())))
		if keepTimes {
			info, err := f.Info()
			require.NoError(t, err)
			require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		}
	}
	return open(t, filepath.Join(dir, "inbox.jsonl"))
}

func found(t *testing.T, box *inbox.Inbox, id string) string {
	t.Helper()
	text := map[string]string{"job-1": "one", "later": "later", "new": "again"}[id]
	r, err := box.Append(t.Context(), inbox.Message{ID: id, Text: text}, 0)
	require.NoError(t, err)
	return r.Found
}

// A repository may bring every file, even a journal. State that only heartbeat writes counts only
// if the journal was written in this very place.
func TestOnlyWhatWasWrittenHereCounts(t *testing.T) {
	strict(t)
	t.Run("ours", func(t *testing.T) {
		box := worked(t)
		assert.Equal(t, inbox.FoundAnswered, found(t, box, "job-1"))
		assert.Equal(t, inbox.FoundScheduled, found(t, box, "later"))
		assert.NoFileExists(t, box.ResultsPath()+".foreign")
	})
	t.Run("without a journal", func(t *testing.T) {
		box := newBox(t, "")
		write(t, box.ResultsPath(), forged)
		write(t, box.ScheduledPath(), `{"id":"s","prompt":"forged","not_before":"2020-01-01T00:00:00Z"}`+"\n")
		assert.Empty(t, found(t, box, "job-1"))
		assert.Equal(t, []string{"one"}, drain(t, box), "what was scheduled is not delivered")
		assert.Equal(t, forged, read(t, box.ResultsPath()+".foreign"))
	})
	t.Run("with its journal", func(t *testing.T) {
		box := brought(t, worked(t).Dir(), false)
		assert.Empty(t, found(t, box, "job-1"))
		assert.Empty(t, found(t, box, "later"))
		assert.FileExists(t, box.EventsPath()+".foreign")
	})
	t.Run("a copy that keeps the times", func(t *testing.T) {
		box := brought(t, worked(t).Dir(), true)
		assert.Equal(t, inbox.FoundAnswered, found(t, box, "job-1"))
		assert.Equal(t, inbox.FoundScheduled, found(t, box, "later"))
	})
	t.Run("times in whole seconds prove nothing", func(t *testing.T) {
		ours := worked(t)
		whole := time.Unix(1_700_000_000, 0)
		require.NoError(t, os.Chtimes(beside(ours, ".inbox-lock"), whole, whole))
		pauseAndResume(t, ours)
		require.NoError(t, os.Chtimes(ours.Path(), whole, whole))
		assert.Empty(t, found(t, brought(t, ours.Dir(), true), "job-1"))
	})
	t.Run("the lock file removed", func(t *testing.T) {
		box := worked(t)
		require.NoError(t, os.Remove(beside(box, ".inbox-lock")))
		assert.Equal(t, inbox.FoundAnswered, found(t, box, "job-1"))
	})
	t.Run("the folder renamed", func(t *testing.T) {
		box := worked(t)
		to := filepath.Join(t.TempDir(), "renamed")
		require.NoError(t, os.Rename(box.Dir(), to))
		assert.Equal(t, inbox.FoundAnswered, found(t, open(t, filepath.Join(to, "inbox.jsonl")), "job-1"))
	})
}

// A repository may bring a state that makes the first transaction commit at once. That does not
// make heartbeat's own state trusted.
func TestCommittingAtOnceBelievesNothing(t *testing.T) {
	strict(t)
	ours := newBox(t, "")
	for _, text := range []string{"sent 1", "sent 2"} {
		send(t, ours, inbox.Message{Text: text})
	}
	turn(t, ours)
	turn(t, ours)
	shell(t, ours, "sed -i 's/sent 2/SENT 2/' inbox.jsonl") // the entry in flight is no longer there
	box := brought(t, ours.Dir(), false)
	write(t, box.ResultsPath(), forged)
	assert.Empty(t, found(t, box, "job-1"))
	assert.FileExists(t, box.ResultsPath()+".foreign")
}

func pauseAndResume(t *testing.T, box *inbox.Inbox) {
	t.Helper()
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.In("s").Start(0, nil))
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())
}

func TestWhoLooksBelievesNothingEither(t *testing.T) {
	strict(t)
	box := newBox(t, "")
	write(t, box.ResultsPath(), forged)
	warnings, err := box.MoveForeignAside(t.Context())
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], ".results.jsonl.foreign in "+box.Dir()+": it is ignored, since it was not written here")
	assert.Contains(t, warnings[0], "`heartbeat recover --adopt` takes it back")
	assert.NoFileExists(t, box.ResultsPath())
	warnings, err = box.MoveForeignAside(t.Context())
	require.NoError(t, err)
	assert.Empty(t, warnings, "it is said once")
}

// Adopting takes all of it, including what came since, and nothing twice.
func TestAdopt(t *testing.T) {
	strict(t)
	box := brought(t, worked(t).Dir(), false)
	assert.Empty(t, found(t, box, "new"))
	drain(t, box)
	write(t, box.ResultsPath()+".foreign-2", forged)
	adopting, err := inbox.Open(box.Path(), inbox.Options{Adopt: true})
	require.NoError(t, err)
	for range 2 {
		tx, err := adopting.Begin(context.Background())
		require.NoError(t, err)
		require.NoError(t, tx.Close())
	}
	assert.Len(t, results(t, box), 3)
	assert.Equal(t, inbox.FoundAnswered, found(t, box, "job-1"))
	assert.Equal(t, inbox.FoundAnswered, found(t, box, "new"))
	assert.Equal(t, inbox.FoundScheduled, found(t, box, "later"))
	left, err := filepath.Glob(filepath.Join(box.Dir(), ".*.foreign*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
