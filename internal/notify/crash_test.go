package notify_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/notify"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/script"
)

// A child of these tests brings two dead letters and a pause, or tells of them.
func TestMain(m *testing.M) {
	crash.Main(m, map[string]func() int{"bring": bring, "tell": tell})
}

func status(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func boxIn(dir string) (*inbox.Inbox, error) {
	return inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{})
}

// bring is a process that has something told of each of its commits.
func bring() int {
	box, err := boxIn(os.Args[1])
	if err != nil {
		return status(err)
	}
	for range 2 {
		tx, err := box.Begin(context.Background())
		if err != nil {
			return status(err)
		}
		e, err := tx.Next(inbox.Mark{})
		if err != nil {
			return status(err)
		}
		if _, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"}); err == nil {
			err = tx.DeadLetter(inbox.ReasonOrphaned)
		}
		if err == nil {
			_, err = tx.Holds().Pause("why", nil)
		}
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			return status(err)
		}
		crash.Promise("committed")
		if err := tx.Close(); err != nil {
			return status(err)
		}
	}
	return 0
}

func tell() int {
	box, err := boxIn(os.Args[1])
	if err == nil {
		_, err = notify.Tell(context.Background(), box, toldIn(os.Args[2]))
	}
	return status(err)
}

func toldIn(path string) notify.Options {
	return notify.Options{Command: "cat >>'" + path + "'"}
}

func setUp(t testing.TB, dir string) {
	require.NoError(t, os.WriteFile(filepath.Join(dir, "inbox.jsonl"), []byte("one\ntwo\nthree\n"), 0o600))
}

// told is how often each occasion was told, after one more look.
func told(t *testing.T, dir, path string) map[string]int {
	t.Helper()
	box, err := boxIn(dir)
	require.NoError(t, err)
	for range 2 {
		_, err = notify.Tell(t.Context(), box, toldIn(path))
		require.NoError(t, err)
	}
	all := map[string]int{}
	b, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	for l := range strings.Lines(string(b)) {
		switch {
		case strings.Contains(l, `"what":"paused"`):
			all["pause"]++
		case strings.Contains(l, `"text":"one"`):
			all["one"]++
		case strings.Contains(l, `"text":"two"`):
			all["two"]++
		default:
			assert.Fail(t, l)
		}
	}
	return all
}

// Whatever a killed process has committed is told by whoever looks next, once.
func TestKilledBeforeItTold(t *testing.T) {
	s := crash.Scenario{Setup: setUp, Run: func(dir string) crash.Command { return crash.Command{Name: "bring", Args: []string{dir}} }}
	s.EveryKill(t, func(t *testing.T, c crash.Crash) {
		got := told(t, c.Dir, filepath.Join(t.TempDir(), "told"))
		box, err := boxIn(c.Dir)
		require.NoError(t, err)
		letters, _, err := script.Letters(box)
		require.NoError(t, err)
		want := map[string]int{}
		for _, l := range letters {
			want[l.Text()] = 1
		}
		if len(letters) > 0 {
			want["pause"] = 1
		}
		assert.Equal(t, want, got)
		assert.GreaterOrEqual(t, len(letters), len(c.Promised))
	})
}

// A notifier that is killed at any step has nothing lost, and at most the occasion that
// it was about told twice. So has one whose disk is full.
func TestKilledWhileItTold(t *testing.T) {
	path := ""
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			setUp(t, dir)
			require.Zero(t, crash.Child(t, "bring", []string{dir}).ExitCode)
			path = filepath.Join(t.TempDir(), "told")
		},
		Run: func(dir string) crash.Command { return crash.Command{Name: "tell", Args: []string{dir, path}} },
	}
	check := func(t *testing.T, c crash.Crash) {
		got := told(t, c.Dir, path)
		twice := 0
		for _, what := range []string{"pause", "one", "two"} {
			assert.GreaterOrEqual(t, got[what], 1, what)
			twice += got[what] - 1
		}
		assert.LessOrEqual(t, twice, 1, "%v", got)
	}
	s.EveryKill(t, check)
	s.EveryFail(t, unix.ENOSPC, func(t *testing.T, c crash.Crash) {
		if c.Result.ExitCode != 0 {
			assert.NotEmpty(t, c.Result.Stderr)
		}
		check(t, c)
	})
}

// What cannot be recorded, as on a full disk, is told once an hour, also where nothing had to be recorded before.
func TestToldOnAFullDisk(t *testing.T) {
	r := newRig(t, lines(2)...)
	r.clock = time.Now()
	r.deadLetter(inbox.ReasonOrphaned)
	r.tell()
	r.told()
	for _, name := range []string{".notify-lock", ".notify-next"} { // both are as old as an inbox that works for a while
		require.NoError(t, os.Chtimes(filepath.Join(r.box.Dir(), name), noon, noon))
	}
	r.deadLetter(inbox.ReasonOrphaned)
	stop := crash.Observe(t, crash.FailFrom(1, unix.ENOSPC, disk.OpCreate, disk.OpWrite))
	for range 3 {
		_, err := notify.Tell(t.Context(), r.box, r.o)
		require.ErrorIs(t, err, unix.ENOSPC)
	}
	assert.Equal(t, []string{"dead-letter"}, whats(r.told()))
	r.clock = r.clock.Add(2 * time.Hour)
	_, err := notify.Tell(t.Context(), r.box, r.o)
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.Equal(t, []string{"dead-letter"}, whats(r.told()))
	r.clock = r.clock.Add(-6 * time.Hour) // what was told is in the time to come
	_, err = notify.Tell(t.Context(), r.box, r.o)
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.Equal(t, []string{"dead-letter"}, whats(r.told()))

	stop()
	r.tell()
	assert.Len(t, r.told(), 1)
	r.tell()
	assert.Empty(t, r.told())
}

// What a launcher says is told, even if its folder is taken away while it is to be recorded.
func TestTheFolderGoesMeanwhile(t *testing.T) {
	r := newRig(t, lines(2)...)
	r.deadLetter(inbox.ReasonOrphaned)
	r.tell()
	r.told()
	crash.Observe(t, func(op disk.Op) error {
		if strings.Contains(op.Path, notify.StateName) {
			_ = os.Rename(r.box.Dir(), filepath.Join(r.dir, "away"))
		}
		return nil
	})
	says := notify.Occasion{What: notify.Failing, Reason: "trouble", Text: "heartbeat-launch has given up"}
	_, err := notify.Tell(t.Context(), r.box, r.o, says)
	require.ErrorIs(t, err, unix.ENOENT)
	assert.Equal(t, []string{"failing"}, whats(r.told()))
}

// A clock that was set back silences nothing.
func TestClock(t *testing.T) {
	r := newRig(t, lines(2)...)
	r.deadLetter(inbox.ReasonOrphaned)
	r.tell()
	r.told()
	r.clock = noon.Add(-time.Hour) // the clock is set back
	r.deadLetter(inbox.ReasonOrphaned)
	r.tell()
	assert.Equal(t, []string{"dead-letter"}, whats(r.told()))
}
