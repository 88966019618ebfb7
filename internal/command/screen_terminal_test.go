package command_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestVerbsAtATerminal shows texts of others without letting them act on the
// terminal, and byte for byte where that is asked for or nobody looks.
func TestVerbsAtATerminal(t *testing.T) {
	const evil = "\x1b]52;c;eA==\x07\x1b[2Japproved\rdenied\u202e\u009b31m"
	dir := t.TempDir()
	inbox := filepath.Join(dir, "inbox.jsonl")
	entry, err := json.Marshal(map[string]string{"id": "job-1", "prompt": evil})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(inbox, append(entry, '\n'), 0o600))
	deliver := exec.Command("heartbeat-stop", "--inbox", inbox)
	deliver.Stdin = hookInput(t, map[string]any{"session_id": "s", "prompt_id": "p", "hook_event_name": "Stop"})
	_, err = deliver.Output()
	require.NoError(t, err)
	require.NoError(t, exec.Command("heartbeat-stop", "recover", "--inbox", inbox).Run())
	pause := exec.Command("heartbeat", "pause", "--inbox", inbox, "--reason", "x\x1b[2J\nqueued 0"+evil)
	require.NoError(t, pause.Run())

	for _, args := range [][]string{
		{"dead-letter", "show", "--inbox", inbox, "job-1"},
		{"dead-letter", "list", "--inbox", inbox},
		{"status", "--inbox", inbox}, {"log", "--inbox", inbox}, {"peek", "--inbox", inbox},
		{"status", "--inbox", inbox, "--json"}, {"dead-letter", "show", "--inbox", inbox, "job-1", "--json"},
		{"resume", "--inbox", inbox}, {"no\x1b[2Jverb"},
	} {
		shown := atATerminal(t, args...)
		assert.NotEmpty(t, shown)
		for _, command := range []string{"\x1b", "\x07", "\u202e", "\u009b", "approved\r"} {
			assert.NotContains(t, shown, command, args)
		}
	}
	assert.Contains(t, atATerminal(t, "dead-letter", "show", "--inbox", inbox, "job-1", "--raw"), evil)
	piped, err := exec.Command("heartbeat", "dead-letter", "show", "--inbox", inbox, "job-1").Output()
	require.NoError(t, err)
	assert.Contains(t, string(piped), evil)
}

// hookInput is what a client writes to the hook.
func hookInput(t *testing.T, members map[string]any) io.Reader {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = read.Close() }) // only read
	require.NoError(t, json.NewEncoder(write).Encode(members))
	require.NoError(t, write.Close())
	return read
}

// atATerminal is what heartbeat shows on one of 80 columns, without colour.
func atATerminal(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("heartbeat", args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	shown, _ := io.ReadAll(terminal) // the other side is gone in the end, which reads as an error
	_ = cmd.Wait()                   // its status is another test's
	require.NoError(t, terminal.Close())
	return string(shown)
}
