package journal

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/testing/crash"
)

const (
	queueFileName = "inbox.jsonl"
	waiting       = "first\n"
	delivered     = `{"entry_id":"e"}`
)

// all is every file that a commit adds lines to.
var all = []Kind{Results, Events, DeadLetters, Scheduled, Costs, Queue}

func lineFor(k Kind) string { return `{"line for":"` + k.Name() + `"}` }

// commitToEach makes one commit that adds a line to each file.
func commitToEach(dir string) error {
	return with(dir, func(s *Store, l *Loaded) error {
		queue, err := disk.OpenForeign(s.queue, unix.O_RDONLY)
		if err != nil {
			return err
		}
		r := *l.Record
		r.Version, r.Inbox, r.Boot = Format, queueFileName, s.Boot()
		r.Seq, r.Cursor, r.InFlight = r.Seq+1, int64(len(waiting)), json.RawMessage(delivered)
		var pending []Line
		for _, k := range all {
			pending = append(pending, Line{Kind: k, JSON: json.RawMessage(lineFor(k))})
		}
		err = s.Place(&r, pending, queue)
		if err = errors.Join(err, queue.Close()); err != nil {
			return err
		}
		if err := s.Commit(&r); err != nil {
			return err
		}
		crash.Promise("committed")
		return s.Follow(r.Cursor)
	})
}

// with calls f on the state of a directory, after what a crash left was finished.
func with(dir string, f func(s *Store, l *Loaded) error) (err error) {
	lock, err := disk.AcquireLock(context.Background(), filepath.Join(dir, LockName), 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	s := Open(filepath.Join(dir, queueFileName), lock, func(string, ...any) {})
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := s.Load()
	if err == nil && !l.Followed {
		err = s.Replay(0, l.Record.Cursor)
	}
	if err != nil {
		return err
	}
	return f(s, l)
}

// A commit is there whole or not at all, and each of its lines once, wherever a
// kill, a failing call or a power loss comes.
func TestACommitSurvives(t *testing.T) {
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, queueFileName), []byte(waiting), 0o600))
		},
		Run: func(dir string) crash.Command { return crash.Command{Name: "commit", Args: []string{dir}} },
	}
	check := func(t *testing.T, c crash.Crash) {
		committed := false
		for range 2 { // the second time nothing is left to finish
			require.NoError(t, with(c.Dir, func(_ *Store, l *Loaded) error {
				committed = l.Record.Seq == 1
				return nil
			}))
		}
		if len(c.Promised) > 0 {
			assert.True(t, committed, "a commit that was promised is there")
		}
		want := func(line string) string {
			if committed {
				return line + "\n"
			}
			return ""
		}
		for _, k := range all[:len(kinds)] {
			assert.Equal(t, want(lineFor(k)), content(t, c.Dir, k.Name()), k.Name())
		}
		assert.Equal(t, waiting+want(lineFor(Queue)), content(t, c.Dir, queueFileName))
		if committed {
			assert.Equal(t, "6", content(t, c.Dir, CursorName))
			assert.Equal(t, delivered, content(t, c.Dir, InFlightName))
			assert.FileExists(t, filepath.Join(c.Dir, RespondedName))
		}
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("full disk", func(t *testing.T) { s.EveryFail(t, unix.ENOSPC, check) })
	t.Run("power loss", func(t *testing.T) {
		s.EveryPowerLoss(t, 1, 3, func(t *testing.T, c crash.Crash) {
			machine.TestOnlyBootID = "the next boot"
			defer func() { machine.TestOnlyBootID = "" }()
			check(t, c)
		})
	})
}

// A disk that refuses the commit and its undoing for one cause is told of once.
func TestAnUncertainCommitSaysWhyOnce(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, queueFileName), []byte(waiting), 0o600))
	require.NoError(t, commitToEach(dir))
	defer crash.Observe(t, crash.FailFrom(1, unix.EIO, disk.OpWrite))()
	err := commitToEach(dir)
	require.ErrorIs(t, err, ErrUncertain)
	assert.EqualError(t, err, "commit uncertain: write "+filepath.Join(dir, JournalName)+": input/output error")
}

// content is a file's content, empty where it does not exist.
func content(t *testing.T, dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	return string(b)
}
