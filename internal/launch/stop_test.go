package launch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stopAt is a moment in the life of a launcher's entries, and how it is told to stop then.
type stopAt struct {
	after time.Duration // since the inbox is its own
	args  []string
	twice bool // SIGTERM comes again at once
	// finishes says that an entry in flight has the time to be answered.
	finishes bool
}

// stops are fifty moments.
func stops() (all []stopAt) {
	for i := range 50 {
		s := stopAt{after: time.Duration(i) * 4 * time.Millisecond, args: []string{"--on-orphan", "retry", "--max-attempts", "1"}}
		if i%2 == 1 {
			s.args = append(s.args, "--mode", "persist")
		}
		switch i % 5 {
		case 3:
			s.twice = true
		case 4:
			s.args = append(s.args, "--drain-timeout", "0")
		default:
			s.finishes = true
		}
		all = append(all, s)
	}
	return all
}

// Whenever a launcher is told to stop, the entry in flight is answered or given back,
// uncounted; it is asked again only if it was given back, and what waits goes on waiting.
func TestStoppedAtAnyMoment(t *testing.T) {
	for i, s := range stops() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "inbox.jsonl"), []byte("take 30ms one\ntake 30ms two\ntake 30ms three\n"), 0o600))
			out := s.launch(t, dir)
			assert.NoFileExists(t, filepath.Join(dir, ".in-flight"), out)
			assert.NoFileExists(t, filepath.Join(dir, ".dead-letter.jsonl"), out)
			answered, back := members(t, dir, ".results.jsonl", ""), members(t, dir, ".events.jsonl", "redelivered")
			if s.finishes {
				assert.Empty(t, back, out)
			}
			asked, _ := os.ReadFile(filepath.Join(dir, "asked")) // none is fine
			for _, text := range []string{"one", "two", "three"} {
				asks := strings.Count(string(asked), text)
				assert.LessOrEqual(t, asks, 1, "%s was asked twice\n%s", text, out)
			}
			assert.LessOrEqual(t, len(answered)+len(back), 3)

			cmd := exec.Command("heartbeat-launch", "--inbox", "inbox.jsonl", "--", "claude", "begin")
			cmd.Dir = dir
			next, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s\n%s", out, next)
			assert.Len(t, members(t, dir, ".results.jsonl", ""), 3, "%s\n%s", out, next)
		})
	}
}

// launch runs a launcher that is told to stop, and returns what it said.
func (s stopAt) launch(t *testing.T, dir string) string {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "heartbeat-launch", append(append([]string{"--inbox", "inbox.jsonl"}, s.args...), "--", "claude", "begin")...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		info, err := os.Stat(filepath.Join(dir, ".launch-lock"))
		return err == nil && info.Size() > 0
	}, 5*time.Minute, time.Millisecond)
	time.Sleep(s.after) // chooses the moment: what must hold holds at each
	for n := 0; n == 0 || s.twice && n == 1; n++ {
		if err := cmd.Process.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			require.NoError(t, err)
		}
	}
	assert.NoError(t, cmd.Wait(), "its status is not 0\n%s", &out)
	return out.String()
}

// members are the lines of a file beside the inbox, those of one event if it is named.
func members(t *testing.T, dir, name, event string) (all []map[string]any) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	for line := range bytes.Lines(text) {
		var m map[string]any
		require.NoError(t, json.Unmarshal(line, &m))
		if event == "" || m["event"] == event {
			all = append(all, m)
		}
	}
	return all
}
