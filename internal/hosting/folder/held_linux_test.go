package folder_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/machine"
)

// Tools of a session may remove its lock, or all of its folder, while its host lives.
func TestHostTakesItsLockAgain(t *testing.T) {
	f, lock := claimed(t)
	self := folder.ProcessOf(os.Getpid())
	s := ended()
	s.Host = &self
	require.NoError(t, lock.Write(s))

	require.NoError(t, os.Remove(f.LockPath()))
	require.NoError(t, lock.Write(s))
	_, err := f.Lock(t.Context())
	require.ErrorIs(t, err, disk.ErrLocked)

	require.NoError(t, os.RemoveAll(f.Dir()))
	require.NoError(t, lock.Write(s))
	_, err = f.Lock(t.Context())
	require.ErrorIs(t, err, disk.ErrLocked)

	assert.Equal(t, []string{"the session's folder, or its lock, was removed while it was hosted, and made again"}, s.Warnings)

	// Another process looks at it, and gives it back on seeing that the host lives.
	require.NoError(t, os.Remove(f.LockPath()))
	looks, err := f.Lock(t.Context())
	require.NoError(t, err)
	s.Messages = 7
	require.NoError(t, lock.Write(s))
	got, err := f.Read()
	require.NoError(t, err)
	assert.EqualValues(t, 7, got.Messages)
	require.NoError(t, looks.Release())
	require.NoError(t, lock.Write(s))
	_, err = f.Lock(t.Context())
	require.ErrorIs(t, err, disk.ErrLocked)
}

func TestIsHosted(t *testing.T) {
	child := exec.Command("sleep", "1000")
	require.NoError(t, child.Start())
	its := folder.ProcessOf(child.Process.Pid)
	self := folder.ProcessOf(os.Getpid())
	assert.True(t, folder.IsHosted(&folder.State{Facts: folder.Facts{Host: &its}}))
	assert.True(t, folder.IsHosted(&folder.State{Facts: folder.Facts{Host: &self}}))
	assert.False(t, folder.IsHosted(&folder.State{}))
	f, _ := claimed(t)
	open, _ := machine.HasOpen(os.Getpid(), f.LockPath())
	assert.True(t, open)
	open, _ = machine.HasOpen(child.Process.Pid, f.LockPath())
	assert.False(t, open)
	require.NoError(t, child.Process.Kill())
	_, _ = child.Process.Wait() // it was killed
	assert.False(t, folder.IsHosted(&folder.State{Facts: folder.Facts{Host: &its}}))
}
