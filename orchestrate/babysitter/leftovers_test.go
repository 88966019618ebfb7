package babysitter

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLeftoversInAJournal(t *testing.T) {
	f := fake(t, "iterate-waiting")
	dir := emptyRun(t)
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	leave := func(name string) string {
		path := filepath.Join(dir, "journal", name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		return path
	}
	dead := leave(fmt.Sprintf("000002.A.json.tmp-%d-1", gone.Process.Pid))
	living := leave(fmt.Sprintf("000002.A.json.tmp-%d-1", os.Getpid())) // its name might be that of the CLI
	old := leave(fmt.Sprintf("000002.B.json.tmp-%d-1", os.Getpid()))
	event := leave("000002.A.json")
	require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(-time.Hour)))

	_, err := f.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	assert.NoFileExists(t, dead)
	assert.NoFileExists(t, old)
	assert.FileExists(t, living)
	assert.FileExists(t, event)
}

func TestRunWithoutAJournal(t *testing.T) {
	f := fake(t)
	dir := emptyRun(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "journal")))
	_, err := f.Iterate(t.Context(), opened(t, dir))
	assert.ErrorContains(t, err, "it has no folder journal")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "journal.bak.1"), 0o700))
	_, err = f.Iterate(t.Context(), opened(t, dir))
	assert.ErrorContains(t, err, "it has no folder journal", "the mended one is not there")
	assert.Empty(t, f.calls())
}
