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
	delivered bool          // the moment is one after the first entry's delivery, not after the launcher's start
	after     time.Duration // since then
	args      []string
	twice     bool // SIGTERM comes again at once
	// finishes says that an entry in flight has the time to be answered.
	finishes bool
	aside    bool // what is not answered then is set aside, not given back
}

// stops are fifty moments, most of them in the lives of three entries.
func stops() (all []stopAt) {
	for i := range 50 {
		s := stopAt{after: time.Duration(i) * 4 * time.Millisecond, aside: i%10 > 5}
		if i >= 10 {
			s.delivered, s.after = true, s.after-40*time.Millisecond
		}
		s.args = []string{"--on-orphan", "retry", "--max-attempts", "1"}
		if s.aside {
			s.args = []string{"--on-orphan", "deadletter"}
		}
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

// Whenever a launcher is told to stop, the entry in flight is answered, given back, uncounted,
// or set aside as stopped; it is asked again only if it was given back, and what waits goes on
// waiting.
func TestStoppedAtAnyMoment(t *testing.T) {
	for i, s := range stops() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "inbox.jsonl"), []byte("take 30ms one\ntake 30ms two\ntake 30ms three\n"), 0o600))
			out := s.launch(t, dir)
			assert.NoFileExists(t, filepath.Join(dir, ".in-flight"), out)
			letters, back := members(t, dir, ".dead-letter.jsonl", ""), members(t, dir, ".events.jsonl", "redelivered")
			for _, l := range letters {
				assert.Equal(t, "stopped", l["reason"], out)
			}
			unanswered := len(letters) + len(back)
			switch {
			case s.finishes:
				assert.Zero(t, unanswered, out)
			case s.aside:
				for _, b := range back {
					assert.Equal(t, "it never arrived", b["reason"], out)
				}
			default:
				assert.Empty(t, letters, out)
			}
			assert.LessOrEqual(t, unanswered, 1, out)
			assertAsked(t, dir, 0, out)
			t.Logf("%d given back, %d set aside", len(back), len(letters))

			cmd := exec.Command("heartbeat-launch", "--inbox", "inbox.jsonl", "--", "claude", "begin")
			cmd.Dir = dir
			next, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s\n%s", out, next)
			assert.Len(t, members(t, dir, ".results.jsonl", ""), 3-len(letters), "%s\n%s", out, next)
			assert.Len(t, members(t, dir, ".dead-letter.jsonl", ""), len(letters), "%s\n%s", out, next)
			assertAsked(t, dir, len(back), out)
		})
	}
}

// assertAsked checks that each entry was asked once, and so many of them once more.
func assertAsked(t *testing.T, dir string, again int, out string) {
	asked, _ := os.ReadFile(filepath.Join(dir, "asked")) // none is fine
	more := 0
	for _, text := range []string{"one", "two", "three"} {
		more += max(0, strings.Count(string(asked), text)-1)
	}
	assert.LessOrEqual(t, more, again, "an entry was asked twice in one attempt: %s\n%s", asked, out)
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
		if s.delivered {
			_, err := os.Stat(filepath.Join(dir, ".in-flight"))
			return err == nil || len(members(t, dir, ".results.jsonl", "")) > 0
		}
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
