package run_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/run"
)

const runJSON = `{"runId":"r1","request":"p","processId":"p1","layoutVersion":"2026.01-storage-preview","createdAt":"2026-11-21T20:25:47.954Z",` +
	`"prompt":"Hi","completionProof":"c70f","nonInteractive":true}`

// write makes a run directory of a run.json.
func write(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(text), 0o600))
	return dir
}

func TestOpen(t *testing.T) {
	dir := write(t, runJSON)
	r, err := run.Open(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"r1", "p1", "c70f", "Hi", dir}, []string{r.ID(), r.ProcessID(), r.Proof(), r.Prompt(), r.Dir()})
}

func TestOpenWithoutProof(t *testing.T) {
	r, err := run.Open(write(t, `{"runId":"r1","layoutVersion":"2026.01-storage-preview"}`))
	require.NoError(t, err)
	assert.Equal(t, "r1", r.ProcessID())
	assert.Equal(t, "2ad5b361da63765af39162be82e6af37e83c41f9e4840c884d42a350a5ccddde", r.Proof(), "derived from the id, as babysitter does")
}

func TestOpenRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"":                                       run.ErrCorrupt,
		"null":                                   run.ErrCorrupt,
		"[]":                                     run.ErrCorrupt,
		`{"runId":"r1"`:                          run.ErrCorrupt,
		`{"layoutVersion":"` + run.Layout + `"}`: run.ErrCorrupt,
		`{"runId":"r1"}`:                         run.ErrLayout,
		`{"runId":"r1","layoutVersion":"2027.02"}`: run.ErrLayout,
	} {
		_, err := run.Open(write(t, text))
		assert.ErrorIs(t, err, want, text)
	}
	_, err := run.Open(write(t, `{"runId":"r1","layoutVersion":"2027.02"}`))
	assert.ErrorContains(t, err, "2027.02")

	_, err = run.Open(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, run.ErrNoRun)
	_, err = run.Open(t.TempDir())
	assert.ErrorIs(t, err, run.ErrNoRun)
	_, err = run.Open(filepath.Join(write(t, runJSON), "run.json"))
	assert.ErrorIs(t, err, run.ErrNoRun)
	_, err = run.Open("r1")
	assert.ErrorContains(t, err, "absolute")
}

// A second look at a journal reads what is new, and what the first one found does not change.
func TestALookAtAJournalThatHasGrown(t *testing.T) {
	t.Parallel()
	dir := write(t, runJSON)
	journal := filepath.Join(dir, "journal")
	require.NoError(t, os.Mkdir(journal, 0o700))
	put(t, journal, 1, `{"type":"RUN_CREATED","data":{}}`)
	put(t, journal, 2, `{"type":"EFFECT_REQUESTED","data":{"effectId":"E1","invocationKey":"p1:S1:work","invocationHash":"h","stepId":"S1","taskId":"work","kind":"agent","taskDefRef":"tasks/E1/task.json"}}`)
	r, err := run.Open(dir)
	require.NoError(t, err)
	before, err := r.State()
	require.NoError(t, err)
	before.Pending[0].Label = "the caller's own"
	same, err := r.State()
	require.NoError(t, err)
	assert.Equal(t, run.Requested, same.Effect("E1"))
	assert.Empty(t, same.Pending[0].Label)
	put(t, journal, 3, `{"type":"EFFECT_RESOLVED","data":{"effectId":"E1","status":"ok"}}`)
	after, err := r.State()
	require.NoError(t, err)
	assert.Empty(t, after.Pending)
	assert.Equal(t, run.ResolvedOK, after.Effect("E1"))
	require.Len(t, before.Pending, 1)
	assert.Equal(t, "E1", before.Pending[0].ID)
	assert.Equal(t, run.Requested, before.Effect("E1"))

	// A repaired one has other names.
	put(t, journal, 4, "no event")
	_, err = r.State()
	require.ErrorIs(t, err, run.ErrCorrupt)
	require.NoError(t, os.RemoveAll(journal))
	require.NoError(t, os.Mkdir(journal, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(journal, "000001.01M8ZWJR3K97NXC3V000000001.json"), []byte(`{"type":"RUN_COMPLETED","data":{}}`), 0o600))
	repaired, err := r.State()
	require.NoError(t, err)
	assert.Equal(t, run.Completed, repaired.Status)
}
