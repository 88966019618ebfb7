package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/script"
)

// TestStatusWatchInATerminal shows the status in one place, until a signal ends it.
func TestStatusWatchInATerminal(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	cmd := exec.Command("heartbeat", "status", "--inbox", inbox, "--watch")
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 300}) // nothing is wrapped
	require.NoError(t, err)
	defer func() { require.NoError(t, terminal.Close()) }()
	require.NoError(t, terminal.SetReadDeadline(time.Now().Add(script.Patience)))
	seen := ""
	until := func(text string) {
		chunk := make([]byte, 4096)
		for !strings.Contains(seen, text) {
			n, err := terminal.Read(chunk)
			require.NoError(t, err, seen)
			seen += string(chunk[:n])
		}
	}
	until("is not there yet: the first entry creates it\r\n")
	require.NoError(t, os.WriteFile(inbox, []byte("one\n"), 0o600))
	until("1 entry waits, and no session has ever asked")
	until("if it does not ask\r\n")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "its status is 0")
	const clear = "\x1b[H\x1b[2J"
	require.True(t, strings.HasPrefix(seen, clear+"inbox "), "%q", seen)
	require.Equal(t, strings.Count(seen, "inbox  "), strings.Count(seen, clear), "%q", seen)
}
