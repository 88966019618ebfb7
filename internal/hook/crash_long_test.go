package hook_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/crash"
)

// Wherever the delivery of a long entry is cut short, the text that was printed or kept with a dead
// letter is there whole. compact then removes the files that nothing names.
func TestCrashOfALongEntry(t *testing.T) {
	if testing.Short() {
		t.Skip("many deliveries of 2 MiB")
	}
	text := strings.Repeat("x", 2<<20+1)
	for name, s := range map[string]situation{
		"delivered":   {stdin: crashStop("s0", false, "ready")},
		"answered":    {turns: 1, stdin: crashStop("s0", true, "done")},
		"dead letter": {turns: 1, stdin: crashStop("s1", false, "ready")},
	} {
		s.entries = text + "\nB\n"
		check := func(t *testing.T, c crash.Crash) {
			inProcess(t, s.command(c.Dir, []string{"compact"}), "")
			checkTexts(t, c.Dir, text)
			inProcess(t, s.command(c.Dir, []string{"recover"}), "")
			checkTexts(t, c.Dir, text)
			s.nextSession(t, c.Dir)
			inProcess(t, s.command(c.Dir, []string{"dead-letter", "purge", "--all", "--yes"}), "")
			inProcess(t, s.command(c.Dir, []string{"compact"}), "")
			for _, pattern := range []string{".entry-*", ".inbox-tries*", "*.tmp"} {
				left, err := filepath.Glob(filepath.Join(c.Dir, pattern))
				require.NoError(t, err)
				assert.Empty(t, left)
			}
		}
		t.Run(name+", killed", func(t *testing.T) { s.scenario().EveryKill(t, check) })
		t.Run(name+", power loss", func(t *testing.T) {
			s.scenario().EveryPowerLoss(t, 1, crash.OnlySynced, afterPowerLoss(check))
		})
	}
}

// checkTexts wants a file with the text for each place that names one, and no other file.
func checkTexts(t *testing.T, dir, text string) {
	t.Helper()
	var named []string
	for _, d := range jsonLines[inbox.DeadLetter](t, filepath.Join(dir, ".dead-letter.jsonl")) {
		if d.RawFile != "" {
			named = append(named, d.RawFile)
		}
	}
	if content, err := os.ReadFile(filepath.Join(dir, ".in-flight")); err == nil {
		var d inbox.Delivery
		require.NoError(t, json.Unmarshal(content, &d))
		if d.TextFile != "" {
			named = append(named, d.TextFile)
		}
	}
	for _, name := range named {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.True(t, string(content) == text, "%s: %d bytes", name, len(content))
	}
	left, err := filepath.Glob(filepath.Join(dir, ".entry-*"))
	require.NoError(t, err)
	assert.Len(t, left, len(named))
}
