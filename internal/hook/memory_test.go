//go:build linux && !race

package hook_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// No step of the hook takes much memory, whatever a line contains. Each step is a separate process:
// a step that is killed for its memory would be killed for ever.
func TestMemoryOfEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("lines of 64 MiB")
	}
	for name, c := range map[string]struct{ before, again, behind string }{
		"members": {`{"prompt":"x"`, `,"member":12345`, `}`},
		"string":  {`{"prompt":"`, `x`, `"}`},
		"escapes": {`{"prompt":"x`, `\n\u00e9`, `"}`},
		"deep":    {`{"prompt":"x","m":`, `[`, ``},
		"blanks":  {``, ` `, `x`},
		"bytes":   {``, "\xff\xfea", ``},
		"control": {``, "\x01", ``},
	} {
		if !long.Wanted() && name != "members" && name != "escapes" {
			continue // the two that take the most
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeLongLine(t, filepath.Join(dir, "inbox.jsonl"), c.before, c.again, c.behind)
			for _, step := range []struct{ policy, input string }{
				{"deadletter", crashStop("s0", false, "ready")},
				{"retry", crashStop("s1", false, "ready")},
				{"deadletter", crashStop("s2", false, "ready")},
			} {
				crash.ForgetPeak()
				r := crash.Command{
					Name: "command", Stdin: step.input, Env: []string{"CLAUDE_PID=", "CLAUDE_CODE_ENTRYPOINT=cli"},
					Args: []string{"--inbox", filepath.Join(dir, "inbox.jsonl"), "--on-orphan", step.policy},
				}.Run(t)
				require.Zero(t, r.ExitCode, r.Stderr)
				assert.Less(t, r.MaxRSS, int64(150<<20), step.input)
			}
		})
	}
}

func writeLongLine(t *testing.T, path, before, again, behind string) {
	f, err := os.Create(path)
	require.NoError(t, err)
	out := bufio.NewWriter(f)
	part := strings.Repeat(again, 1000)
	_, err = out.WriteString(before)
	for n := len(before) + len(behind); err == nil && n+len(part) <= inbox.MaxLine; n += len(part) {
		_, err = out.WriteString(part)
	}
	require.NoError(t, err)
	_, err = out.WriteString(behind + "\nnext\n")
	require.NoError(t, err)
	require.NoError(t, out.Flush())
	require.NoError(t, f.Close())
}
