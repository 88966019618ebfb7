package hook_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/hook"
	"heartbeat/internal/money/meter"
)

func (s *spender) view() *inbox.View {
	box, err := inbox.Open(filepath.Join(s.dir, "inbox.jsonl"), inbox.Options{})
	require.NoError(s.t, err)
	v, err := box.View()
	require.NoError(s.t, err)
	s.t.Cleanup(func() { assert.NoError(s.t, v.Close()) })
	return v
}

func (s *spender) notCounted() (reasons []string) {
	for _, e := range jsonLines[inbox.Event](s.t, filepath.Join(s.dir, ".events.jsonl")) {
		if e.Event == inbox.EventUncounted {
			assert.Equal(s.t, "s0", e.Session)
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// A meter that cannot be used lifts the limits. That is said once, until it counts again.
func TestAMeterThatCannotBeUsed(t *testing.T) {
	hook.SetLineWait(time.Millisecond)
	for name, c := range map[string]struct {
		block func(t *testing.T, path string) (free func())
		says  string
	}{
		"folder": {func(t *testing.T, path string) func() {
			require.NoError(t, os.Mkdir(path, 0o700))
			return func() { require.NoError(t, os.Remove(path)) }
		}, "not a regular file: remove it"},
		"link": {func(t *testing.T, path string) func() {
			require.NoError(t, os.Symlink("inbox.jsonl", path))
			return func() { require.NoError(t, os.Remove(path)) }
		}, "symbolic link"},
		"pipe": {func(t *testing.T, path string) func() {
			require.NoError(t, unix.Mkfifo(path, 0o600))
			return func() { require.NoError(t, os.Remove(path)) }
		}, "not a regular file: remove it"},
		"lock": {func(t *testing.T, path string) func() {
			lock, err := disk.AcquireLock(t.Context(), path, 0)
			require.NoError(t, err)
			return func() { require.NoError(t, lock.Release()) }
		}, "held by another process"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spending(t, "--max-tokens-per-entry", "3k").deliver()
			require.NoError(t, os.RemoveAll(filepath.Join(s.dir, meter.Name)))
			free := c.block(t, filepath.Join(s.dir, meter.Name))
			for range 4 {
				s.request()
				require.Empty(t, s.event("PostToolBatch", ""))
			}
			require.Len(t, s.notCounted(), 1)
			assert.Contains(t, s.notCounted()[0], c.says)
			assert.Contains(t, s.view().Uncounted("s0"), c.says)
			assert.Equal(t, hook.BlockedWait, hook.MeterWait(s.view(), "s0"), "what is blocked is not waited for again")
			free()
			require.Contains(t, s.event("PostToolBatch", ""), "tokens")
			assert.Empty(t, s.view().Uncounted("s0"))
			assert.Zero(t, hook.MeterWait(s.view(), "s0"))
		})
	}
}

// The end of a turn tells it as well, and the same cause is no second event.
func TestAMeterThatCannotBeUsedAtAStop(t *testing.T) {
	s := spending(t, "--max-tokens-per-day", "30k")
	path := filepath.Join(s.dir, meter.Name)
	require.NoError(t, os.Mkdir(path, 0o700))
	s.deliver()
	s.request()
	require.Empty(t, s.event("PostToolBatch", ""))
	require.Contains(t, s.stop(true, "did A"), `"reason":"B"`, "what cannot be counted keeps nobody from being served")
	assert.Len(t, s.notCounted(), 1)
	require.NoError(t, os.Remove(path))
	require.Contains(t, s.stop(true, "did B"), `"reason":"C"`)
	assert.Empty(t, s.view().Uncounted("s0"))

	// Without limits nobody has to hear of it.
	s = spending(t)
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, meter.Name), 0o700))
	s.deliver()
	assert.Empty(t, s.notCounted())
}
