package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/host"
)

// A process may call itself what it likes.
func TestProcessStartOfAnyName(t *testing.T) {
	for _, name := range []string{"a b", "a) R 1 (b", "()", ") ) )", "9 9 9 9", "\n"} {
		cmd, input := startFor(t, "name "+name)
		later, other := start(t)
		started := host.ProcessStart(cmd.Process.Pid)
		assert.GreaterOrEqual(t, started, host.ProcessStart(os.Getpid()), "%q", name)
		assert.LessOrEqual(t, started, host.ProcessStart(later.Process.Pid), "%q", name)
		require.NoError(t, other.Close())
		require.NoError(t, later.Wait())
		require.NoError(t, input.Close())
		require.NoError(t, cmd.Wait())
	}
}

func TestLockHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	assert.Zero(t, host.LockHolder(path), "there is no such file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	assert.Zero(t, host.LockHolder(path))

	cmd, input := startFor(t, "lock "+path)
	assert.Equal(t, cmd.Process.Pid, host.LockHolder(path))
	assert.Equal(t, cmd.Process.Pid, host.LockHolder(path), "looking takes nothing away")
	other := path + "2"
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	assert.Zero(t, host.LockHolder(other))
	require.NoError(t, input.Close())
	require.NoError(t, cmd.Wait())
	assert.Zero(t, host.LockHolder(path))

	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	assert.Equal(t, os.Getpid(), host.LockHolder(path))
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_UN))
	assert.Zero(t, host.LockHolder(path))

	require.NoError(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}))
	assert.Zero(t, host.LockHolder(path), "that is another kind of lock")
}
