package run_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/run"
)

const grain = 50 * time.Millisecond

func TestMain(m *testing.M) {
	run.SetGrain(grain)
	os.Exit(m.Run())
}

// settle returns when the journal has been unchanged for as long as a cache requires.
func settle(t testing.TB, r *run.Run) {
	t.Helper()
	require.Eventually(t, func() bool {
		probe := filepath.Join(t.TempDir(), "probe")
		require.NoError(t, os.WriteFile(probe, nil, 0o600))
		now, err := os.Stat(probe)
		require.NoError(t, err)
		journal, err := os.Stat(filepath.Join(r.Dir(), "journal"))
		require.NoError(t, err)
		return now.ModTime().Sub(journal.ModTime()) > 2*grain
	}, time.Minute, grain/5)
}
