package babysitter

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
)

func TestOneWriterPerRun(t *testing.T) {
	f := fake(t, "iterate-waiting")
	dir := emptyRun(t)
	other, err := disk.AcquireLock(t.Context(), filepath.Join(dir, ".heartbeat-lock"), time.Minute)
	require.NoError(t, err)
	f.maxWait = time.Nanosecond
	_, err = f.Iterate(t.Context(), opened(t, dir))
	assert.ErrorIs(t, err, ErrLocked)
	assert.ErrorContains(t, err, "work on the run "+dir)
	assert.Empty(t, f.calls())
	require.NoError(t, other.Release())
	_, err = f.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
}

func TestRunThatCannotBeLocked(t *testing.T) {
	dir := emptyRun(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".heartbeat-lock"), 0o700))
	_, err := run{dir: dir}.lock(t.Context(), 0)
	assert.ErrorContains(t, err, "its folder must be writable for this user")
	assert.NotErrorIs(t, err, ErrLocked)
	if os.Geteuid() == 0 {
		return // who may write anywhere
	}
	dir = emptyRun(t)
	require.NoError(t, os.Chmod(dir, 0o500))
	defer os.Chmod(dir, 0o700)
	_, err = run{dir: dir}.lock(t.Context(), 0)
	assert.ErrorIs(t, err, os.ErrPermission)
}

// A lock without its content is left to whoever writes it, for a while.
func TestLockOfAWriterInBetween(t *testing.T) {
	dir := emptyRun(t)
	r := run{dir: dir}
	require.NoError(t, os.WriteFile(r.cliLockPath(), nil, 0o600))
	require.NoError(t, r.clearLock(&CLI{}))
	assert.FileExists(t, r.cliLockPath())
	for _, written := range []time.Time{time.Now().Add(-time.Minute), time.Now().Add(time.Hour)} {
		require.NoError(t, os.WriteFile(r.cliLockPath(), nil, 0o600))
		require.NoError(t, os.Chtimes(r.cliLockPath(), written, written))
		require.NoError(t, r.clearLock(&CLI{}))
		assert.NoFileExists(t, r.cliLockPath())
	}
}

// A lock that the CLI cannot write is nobody's: there is no one to wait for.
func TestLockThatStaysUnwritten(t *testing.T) {
	f := fake(t, "iterate-empty-lock")
	f.maxWait = time.Nanosecond
	dir := emptyRun(t)
	require.NoError(t, os.WriteFile(run{dir: dir}.cliLockPath(), nil, 0o600))
	_, err := f.Iterate(t.Context(), opened(t, dir))
	assert.ErrorContains(t, err, "is the disk full?")
	assert.NotErrorIs(t, err, ErrLocked)
}
