package hosting

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
)

// The tools of a session can write its record, so who is named there as its host is
// signalled only with the session's lock open.
func TestCancelSignalsOnlyTheHost(t *testing.T) {
	w := newWorld(t)
	other := exec.Command("sleep", "1000")
	require.NoError(t, other.Start())
	defer func() {
		require.NoError(t, other.Process.Kill())
		state, err := other.Process.Wait()
		require.NoError(t, err)
		assert.Equal(t, syscall.SIGKILL, state.Sys().(syscall.WaitStatus).Signal())
	}()
	_, lock := w.held("ses-1", func(s *folder.State) {
		its := folder.ProcessOf(other.Process.Pid)
		s.Status, s.EndedAt, s.Host = folder.Running, nil, &its
	})
	defer func() { require.NoError(t, lock.Release()) }()
	got := call(t, "", "cancel", "ses-1")
	assert.Equal(t, 1, got.status)
	assert.Contains(t, got.err, "does not hold the session's lock: nothing was signalled")
}
