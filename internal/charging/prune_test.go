package charging_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/charging"
	"heartbeat/internal/meter"
)

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("x\n"), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	for _, session := range []string{"live", "old", "ö l d", "new"} {
		_, err := meter.Advance(dir, meter.Reading{Session: session, ContextPercent: -1})
		require.NoError(t, err)
		if session != "new" {
			past := time.Now().Add(-time.Hour)
			require.NoError(t, os.Chtimes(filepath.Join(dir, meter.Name(session)), past, past))
		}
	}
	own, torn := filepath.Join(dir, ".meter-readings.csv"), filepath.Join(dir, ".meter-torn")
	require.NoError(t, os.WriteFile(own, []byte("2026-11-22,kWh,4\n"), 0o600))
	content, err := os.ReadFile(filepath.Join(dir, ".meter-old"))
	require.NoError(t, err)
	content[len(content)-2]++
	require.NoError(t, os.WriteFile(torn, content, 0o600))
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(own, past, past))
	require.NoError(t, os.Chtimes(torn, past, past))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".meter-folder"), 0o700))
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	tx.Position("live", 0, inbox.TurnUnknown)
	require.NoError(t, tx.StartSession("live", 0))
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())

	require.NoError(t, charging.Prune(box, time.Now().Add(-time.Minute)))
	assert.FileExists(t, filepath.Join(dir, ".meter-live"))
	assert.FileExists(t, filepath.Join(dir, ".meter-new"))
	assert.NoFileExists(t, filepath.Join(dir, ".meter-old"))
	assert.NoFileExists(t, filepath.Join(dir, meter.Name("ö l d")))
	assert.FileExists(t, own, "it is a person's")
	assert.FileExists(t, torn, "its sum is wrong")
	assert.DirExists(t, filepath.Join(dir, ".meter-folder"))
}
