package disk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// soon returns a context that ends long after everything here is done.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func done(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// holder starts a child that holds the lock.
func holder(t *testing.T, path string) *crash.Running {
	t.Helper()
	r := crash.Command{Name: "hold", Args: []string{path}}.Start(t)
	require.Equal(t, "locked", r.Line(t))
	return r
}

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	r := holder(t, path)
	_, err := disk.AcquireLock(done(t), path, 0)
	require.ErrorIs(t, err, disk.ErrLocked)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, path)

	got := make(chan error, 1)
	go func() {
		lock, err := disk.AcquireLock(soon(t), path, 0)
		got <- errors.Join(err, lock.Release())
	}()
	select {
	case err := <-got:
		require.FailNow(t, "the lock was had twice", "error: %v", err)
	default:
	}
	r.CloseInput(t)
	require.NoError(t, <-got)
	require.Zero(t, r.Wait(t).ExitCode)
}

func TestLockExcludesWithinProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := disk.AcquireLock(soon(t), path, 0)
	require.NoError(t, err)
	_, err = disk.AcquireLock(done(t), path, 0)
	require.ErrorIs(t, err, disk.ErrLocked)
	require.NoError(t, lock.Release())
	lock, err = disk.AcquireLock(soon(t), path, 0)
	require.NoError(t, err)
	require.NoError(t, lock.Release())
	require.NoError(t, lock.Release(), "releasing twice is no error")
	require.NoError(t, (*disk.Lock)(nil).Release())
	assert.Equal(t, "-rw-------", mode(t, path))
}

func TestLockTimesOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for name, lock := range map[string]func() (*disk.Lock, error){
		"context": func() (*disk.Lock, error) { return disk.AcquireLock(ctx, path, 0) },
		"wait":    func() (*disk.Lock, error) { return disk.AcquireLock(t.Context(), path, 20*time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lock()
			require.ErrorIs(t, err, disk.ErrLocked)
		})
	}
}

func TestFreeLockNeedsNoTime(t *testing.T) {
	lock, err := disk.AcquireLock(done(t), filepath.Join(t.TempDir(), "lock"), 0)
	require.NoError(t, err)
	require.NoError(t, lock.Release())
}

func TestLockReleasedOnSIGKILL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	r := holder(t, path)
	assert.Equal(t, syscall.SIGKILL, r.Kill(t).Signal)
	lock, err := disk.AcquireLock(done(t), path, 0)
	require.NoError(t, err)
	require.NoError(t, lock.Release())
}

// TestLockFileRemoved removes the file while one process holds the lock and another waits for it.
// The waiter must not lock the removed file, since that excludes nobody.
func TestLockFileRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first := holder(t, path)
	waiter := crash.Command{Name: "hold", Args: []string{path}}.Start(t)
	waitUntilOpen(t, path, 2)
	require.NoError(t, os.Remove(path))
	second := holder(t, path) // of the new file

	first.CloseInput(t)
	require.Zero(t, first.Wait(t).ExitCode)
	waitUntilOpen(t, path, 2) // the waiter has opened the new file
	second.CloseInput(t)
	assert.Equal(t, "locked", waiter.Line(t))
	_, err := disk.AcquireLock(done(t), path, 0)
	require.ErrorIs(t, err, disk.ErrLocked)
	waiter.CloseInput(t)
	require.Zero(t, waiter.Wait(t).ExitCode)
}

// waitUntilOpen waits until that many processes have the file open, by its name in /proc/PID/fd.
func waitUntilOpen(t *testing.T, name string, processes int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells who has a file open")
	}
	require.Eventually(t, func() bool {
		fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
		require.NoError(t, err)
		n := 0
		for _, fd := range fds {
			if target, err := os.Readlink(fd); err == nil && target == name {
				n++
			}
		}
		return n >= processes
	}, 5*time.Minute, time.Millisecond)
}

func TestLockCounter(t *testing.T) {
	const processes = 50
	dir := t.TempDir()
	write(t, filepath.Join(dir, "number"), "0")
	all := startAll(t, processes, func(int) crash.Command {
		return crash.Command{Name: "count", Args: []string{dir}}
	})
	for _, r := range all {
		require.Zero(t, r.Wait(t).ExitCode)
	}
	assert.Equal(t, fmt.Sprint(processes), read(t, filepath.Join(dir, "number")))
}
