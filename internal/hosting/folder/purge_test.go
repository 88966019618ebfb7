package folder_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/testing/crash"
)

// filled is the folder of an ended session with files in it.
func filled(t testing.TB, dir string, change func(*folder.State)) folder.Folder {
	t.Helper()
	f := at(dir)
	lock, err := f.Claim(t.Context())
	require.NoError(t, err)
	s := ended()
	if change != nil {
		change(s)
	}
	require.NoError(t, lock.Write(s))
	require.NoError(t, lock.Release())
	for _, path := range []string{f.InboxPath(), filepath.Join(f.TempDir(), "mcp-config.json"), f.SpoolPath()} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	return f
}

func TestPurge(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "kept")
	require.NoError(t, os.MkdirAll(outside, 0o700))
	f := filled(t, t.TempDir(), nil)
	require.NoError(t, os.Symlink(outside, filepath.Join(f.TempDir(), "link")))
	require.NoError(t, os.Symlink(outside, filepath.Join(f.Dir(), "link")))
	require.NoError(t, f.MayPurge(longAgo.Add(1), false))
	assert.DirExists(t, f.Dir())
	require.NoError(t, f.Purge(t.Context(), longAgo.Add(1), false))
	require.NoError(t, f.MayPurge(longAgo.Add(1), false))
	assert.NoDirExists(t, f.Dir())
	assert.DirExists(t, folder.Root(f.DB))
	assert.DirExists(t, outside)
	require.NoError(t, f.Purge(t.Context(), longAgo.Add(1), false), "there is nothing")
}

func TestPurgeKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*folder.State)
		why    string
	}{
		"alive":      {change: func(s *folder.State) { s.Status = folder.Running }, why: "it has not ended"},
		"young":      {change: func(s *folder.State) { at := longAgo.Add(time.Hour); s.EndedAt = &at }, why: "it ended at 2026-01-02T04:04:05Z"},
		"unreported": {change: func(s *folder.State) { s.TerminalReport.State = folder.Waiting }, why: "its end was not reported yet"},
		"silent":     {change: func(s *folder.State) { s.TerminalReport.State = "" }, why: "its end was not reported yet"},
		"unfinished": {change: func(s *folder.State) { s.Host = &folder.Process{PID: 1 << 22, Start: 1} }, why: "its host was killed, and nobody has finished it"},
		"unanswered": {change: func(s *folder.State) { s.OwnInbox, s.Entries.Queued, s.Entries.InFlight = true, 1, 1 },
			why: "2 of its entries were not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			f := filled(t, t.TempDir(), c.change)
			var kept *folder.KeptError
			require.ErrorAs(t, f.MayPurge(longAgo.Add(time.Minute), false), &kept)
			require.ErrorAs(t, f.Purge(t.Context(), longAgo.Add(time.Minute), false), &kept)
			assert.Contains(t, kept.Error(), "session "+id+" is kept: "+c.why)
			assert.FileExists(t, f.InboxPath())
			_, err := f.Read()
			require.NoError(t, err)
			if name == "unanswered" {
				require.NoError(t, f.Purge(t.Context(), longAgo.Add(time.Minute), true))
				assert.NoDirExists(t, f.Dir())
			}
		})
	}
}

// A report that the guild refused goes out again only on request, so that is what is said.
func TestPurgeKeepsWhatTheGuildRefused(t *testing.T) {
	f, lock := claimed(t)
	require.NoError(t, lock.Write(ended()))
	r, err := lock.DB.Decide(t.Context(), store.Report{Session: id, Kind: store.Record, Head: "{}"}, nil)
	require.NoError(t, err)
	r.State, r.Code = store.Refused, 403
	require.NoError(t, lock.DB.SetReportState(t.Context(), r))
	require.NoError(t, lock.Release())
	assert.ErrorContains(t, f.MayPurge(longAgo.Add(time.Minute), false), "only with --refused")
}

// A host that died before its first record leaves directories; anything else there
// is somebody's.
func TestPurgeWithoutRecord(t *testing.T) {
	f := at(t.TempDir())
	require.NoError(t, f.Make())
	var kept *folder.KeptError
	require.ErrorAs(t, f.MayPurge(longAgo, false), &kept)
	require.ErrorAs(t, f.Purge(t.Context(), longAgo, false), &kept)
	assert.Equal(t, "session "+id+" is kept: it has no record yet", kept.Error())
	later := time.Now().Add(time.Hour)
	require.NoError(t, f.MayPurge(later, false))
	require.NoError(t, f.Purge(t.Context(), later, false))
	assert.NoDirExists(t, f.Dir())

	for _, path := range []string{f.InboxPath(), f.SpoolPath()} {
		require.NoError(t, f.Make())
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
		require.ErrorAs(t, f.Purge(t.Context(), later, false), &kept)
		assert.FileExists(t, path)
		require.NoError(t, os.Remove(path))
	}
}

// After a kill the record still says that the session has ended, or nothing is left
// that matters; the next purge ends the work.
func TestPurgeSurvives(t *testing.T) {
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) { filled(t, dir, nil) },
		Run:   func(dir string) crash.Command { return crash.Command{Name: "purge", Args: []string{dir}} },
	}
	check := func(t *testing.T, c crash.Crash) {
		f := at(c.Dir)
		if v, err := f.View(); err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
		} else if v.State.Version != 0 {
			assert.Equal(t, folder.Completed, v.Status)
		} else {
			assert.FileExists(t, filepath.Join(f.Dir(), "purged"))
		}
		require.NoError(t, purge(c.Dir))
		assert.NoDirExists(t, f.Dir())
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("broken disk", func(t *testing.T) { s.EveryFail(t, unix.EIO, check) })
}

// A session may begin in a folder that is being purged: it then has a whole folder
// and a lock that excludes others.
func TestPurgeWhileClaimed(t *testing.T) {
	f := at(t.TempDir())
	const rounds = 100
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			err := f.Purge(context.Background(), longAgo.Add(time.Hour), false)
			var busy *folder.BusyError
			var kept *folder.KeptError
			if err != nil && !errors.As(err, &busy) && !errors.As(err, &kept) {
				done <- err
				return
			}
		}
	}()
	for range rounds {
		lock, err := f.Claim(t.Context())
		var busy *folder.BusyError
		if errors.As(err, &busy) {
			continue
		}
		require.NoError(t, err)
		require.DirExists(t, f.TempDir())
		require.DirExists(t, filepath.Dir(f.InboxPath()))
		require.NoError(t, lock.Write(ended()))
		require.NoError(t, lock.Release())
	}
	close(stop)
	require.NoError(t, <-done)
}
