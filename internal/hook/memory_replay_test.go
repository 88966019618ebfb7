//go:build linux && !race

package hook_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// A send was killed before it trimmed the record of a long line from the journal. The next command
// must not take a multiple of the line's memory.
func TestMemoryOfALongRecord(t *testing.T) {
	long.Only(t, "lines of 64 MiB")
	send := func(size int, env string) (string, crash.Result) {
		dir := t.TempDir()
		text := filepath.Join(dir, "text")
		require.NoError(t, os.WriteFile(text, nil, 0o600))
		f, err := os.OpenFile(text, os.O_WRONLY, 0)
		require.NoError(t, err)
		for part := strings.Repeat("x", 1000); err == nil && size > 0; size -= len(part) {
			_, err = f.WriteString(part)
		}
		require.NoError(t, errors.Join(err, f.Close()))
		return dir, crash.Command{
			Name: "command", Args: []string{"send", "--inbox", filepath.Join(dir, "inbox.jsonl"), "--id", "long", "--file", text},
			Env: []string{env},
		}.Run(t)
	}
	count := filepath.Join(t.TempDir(), "count")
	_, r := send(300<<10, crash.EnvCount+"="+count)
	require.Zero(t, r.ExitCode, r.Stderr)
	at := slices.IndexFunc(jsonLines[struct{ Op disk.Op }](t, count), func(l struct{ Op disk.Op }) bool {
		return l.Op.Kind == disk.OpSync && filepath.Base(l.Op.Path) == "inbox.jsonl"
	})
	require.Positive(t, at, "the journal is trimmed behind this")
	dir, r := send(inbox.MaxLine-2000, fmt.Sprintf("%s=%d", crash.EnvKillAt, at+1))
	require.Equal(t, "killed", r.Signal.String(), r.Stderr)
	journal, err := os.Stat(filepath.Join(dir, ".inbox-journal"))
	require.NoError(t, err)
	require.Greater(t, journal.Size(), int64(60<<20))
	crash.ForgetPeak()
	r = crash.Command{
		Name: "command", Stdin: crashStop("s0", false, "ready"), Env: []string{"CLAUDE_PID=", "CLAUDE_CODE_ENTRYPOINT=cli"},
		Args: situation{}.command(dir, nil),
	}.Run(t)
	require.Zero(t, r.ExitCode, r.Stderr)
	assert.Contains(t, r.Stdout, "too long to be handed over here")
	assert.Less(t, r.MaxRSS, int64(150<<20))
}
