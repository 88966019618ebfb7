package orchestrate_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestNext(t *testing.T) {
	f, err := orchestrate.StateFileAt(filepath.Join(t.TempDir(), "state"), "s1")
	require.NoError(t, err)
	got := orchestrate.NewState("r1", "do it", 0, noon).Next(noon.Add(time.Minute))
	require.NoError(t, f.Write(got))
	assert.Equal(t, orchestrate.State{
		Active: true, Iteration: 2, RunID: "r1", Prompt: "do it",
		StartedAt: "2026-11-20T12:00:00Z", LastIterationAt: "2026-11-20T12:01:00Z",
	}, got)
	read, err := f.Read()
	require.NoError(t, err)
	assert.Equal(t, got, read)
}
