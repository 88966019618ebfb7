package doctor

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"

	"heartbeat/orchestrate"
)

// An entry is in one place: what waits or is at work is not settled, and what is settled is so
// once. A letter that was dealt with is no place.
func TestWrongPlaces(t *testing.T) {
	of := func(all ...uint64) (n [places]int) {
		for _, p := range all {
			n[p]++
		}
		return n
	}
	for _, right := range [][places]int{
		of(queued), of(inFlight), of(scheduled), of(answered), of(setAside), of(settled, answered), of(settled, setAside), of(settled, told),
		of(settled, scheduled), of(settled, inFlight), of(settled, setAside, dealtWith, queued), of(settled, setAside, dealtWith, setAside), of(told),
		of(settled, settled, setAside, dealtWith, answered),
	} {
		assert.Empty(t, wrongPlaces(right), right)
	}
	for _, wrong := range [][places]int{
		of(settled), of(queued, answered), of(queued, setAside), of(queued, queued), of(inFlight, answered), of(inFlight, queued), of(scheduled, queued),
		of(scheduled, answered), of(answered, answered), of(answered, setAside), of(settled, setAside, dealtWith, queued, answered),
	} {
		assert.NotEmpty(t, wrongPlaces(wrong), wrong)
	}
}

// fsckOf is what is found in an inbox, for each check that is not ok.
func fsckOf(t *testing.T, box *inbox.Inbox, waits ...string) (found []string) {
	t.Helper()
	in := Input{Now: time.Now(), Driven: func(*inbox.Inbox) ([]orchestrate.DrivenRun, []string, error) {
		return []orchestrate.DrivenRun{{Dir: "/runs/r", Waits: waits}}, nil, nil
	}}
	for _, c := range Amiss(Fsck(context.Background(), in, box)) {
		if strings.Contains(c.Evidence, "/runs/r") {
			continue // it is not there, which is another check's
		}
		assert.NotEmpty(t, c.Fix, c.Evidence)
		found = append(found, c.Name+": "+c.Evidence)
	}
	return found
}

func TestFsckOfARun(t *testing.T) {
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	for _, id := range []string{"r/waits", "r/dead"} {
		_, err := box.Append(t.Context(), inbox.Message{ID: id, Text: "x"}, 0)
		require.NoError(t, err)
	}
	letter := `{"entry_id":"0123456789abcdef0","id":"r/dead","raw_line":"x","reason":"orphaned","dead_lettered_at":"2026-01-01T00:00:00Z"}` + "\n"
	require.NoError(t, os.WriteFile(box.DeadLetterPath(), []byte(letter), 0o600))
	require.Empty(t, fsckOf(t, box, "r/waits", "r/dead"))
	found := fsckOf(t, box, "r/gone")
	require.Len(t, found, 1)
	assert.Contains(t, found[0], "run: a run waits for the entry r/gone, which is nowhere in ")
}

// A line of any length is looked at in bounds, and told of where it is none.
func TestFsckOfALongLine(t *testing.T) {
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	_, err = box.Append(t.Context(), inbox.Message{Text: "x"}, 0)
	require.NoError(t, err)
	long := bytes.Repeat([]byte("x"), 8<<20)
	require.NoError(t, os.WriteFile(box.EventsPath(), append(long, '\n'), 0o600))
	found := fsckOf(t, box)
	require.Len(t, found, 1)
	assert.Contains(t, found[0], "events: 1 line is no line of its kind in ")
	require.NoError(t, os.WriteFile(box.EventsPath(), append(append([]byte(`{"event":"dropped","reason":"`), long...), "\"}\n"...), 0o600))
	assert.Empty(t, fsckOf(t, box))
}
