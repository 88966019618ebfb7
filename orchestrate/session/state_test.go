package session_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/session"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestCreateAndUpdate(t *testing.T) {
	f, err := session.At(filepath.Join(t.TempDir(), "state"), "s1")
	require.NoError(t, err)
	require.NoError(t, f.Create(t.Context(), session.New("r1", "do it", 0, noon)))
	got, err := f.Update(t.Context(), func(s *session.State) error {
		*s = s.Next(noon.Add(time.Minute))
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, session.State{
		Active: true, Iteration: 2, RunID: "r1", Prompt: "do it",
		StartedAt: "2026-11-20T12:00:00Z", LastIterationAt: "2026-11-20T12:01:00Z",
	}, got)
	read, err := f.Read()
	require.NoError(t, err)
	assert.Equal(t, got, read)
}
