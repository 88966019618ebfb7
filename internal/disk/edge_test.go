package disk_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// Opening a dangling link must not loop for ever, and must say what is wrong.
func TestAppendThroughLinkToNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	odd["link to nothing"](t, "f")
	defer crash.Observe(t, crash.FailFrom(1000, unix.EIO))()
	_, _, err := disk.OpenAppend("f")
	require.Error(t, err)
	require.NotErrorIs(t, err, unix.EIO)
	require.ErrorContains(t, err, "open f: ")
}

// TestReadAllOfGrownFile reads bytes that were written after the file was opened.
func TestReadAllOfGrownFile(t *testing.T) {
	f, _, err := disk.OpenWrite(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	require.NoError(t, f.WriteAt([]byte("content"), 0))
	b, err := f.ReadUpTo(disk.MaxWhole)
	require.NoError(t, errors.Join(err, f.Close()))
	assert.Equal(t, "content", string(b))
}

// After a torn append the offset must be where the torn bytes begin, so that the caller can cut them off.
func TestAppendOffsetAfterTear(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "old\n")
	f, _, err := disk.OpenAppend(path)
	require.NoError(t, err)
	defer crash.Observe(t, crash.TearAt(1, unix.ENOSPC))()
	off, err := f.Append([]byte("0123456789"))
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.EqualValues(t, 4, off)
	require.NoError(t, f.Close())
}

// If a rename fails, Publish removes its temporary file. That must be announced too.
func TestEveryChangeIsAnnounced(t *testing.T) {
	r := crash.Recorder{}
	defer crash.Observe(t, crash.Chain(r.Observe, crash.FailAt(4, unix.EIO)))()
	path := filepath.Join(t.TempDir(), "f")
	require.ErrorIs(t, disk.Publish(path, []byte("x"), false), unix.EIO)
	ops := r.Ops()
	assert.Equal(t, disk.Op{Kind: disk.OpRemove, Path: path + ".tmp"}, ops[len(ops)-1])
}

// People read this error, so it is one line.
func TestErrLockedIsOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder(t, path)
	_, err := disk.AcquireLock(done(t), path, 0)
	require.ErrorIs(t, err, disk.ErrLocked)
	assert.Zero(t, strings.Count(err.Error(), "\n"), err.Error())
}

// Everything that is not a regular file gives the same error.
func TestForeignHasOneError(t *testing.T) {
	for what := range odd {
		t.Run(what, func(t *testing.T) {
			t.Chdir(t.TempDir())
			odd[what](t, "f")
			_, _, err := disk.OpenWrite("f")
			require.ErrorIs(t, err, disk.ErrForeign)
			_, err = disk.OpenRead("f")
			require.ErrorIs(t, err, disk.ErrForeign)
		})
	}
}
