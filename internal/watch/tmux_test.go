package watch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/script"
)

// TestInTmux holds that the view works in tmux: it is drawn, follows a resize, takes
// keys, and leaves the window as it was.
func TestInTmux(t *testing.T) {
	program, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("no tmux here: apt-get install -y tmux")
	}
	socket := filepath.Join(t.TempDir(), "tmux")
	tmux := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(program, append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	sees := func(texts ...string) {
		t.Helper()
		var shown string
		for limit := time.Now().Add(script.Patience); time.Now().Before(limit); {
			shown = tmux("capture-pane", "-p", "-t", "w")
			found := true
			for _, text := range texts {
				found = found && strings.Contains(shown, text)
			}
			if found {
				return
			}
		}
		require.Fail(t, "it is not shown", "no %q on:\n%s", texts, shown)
	}
	tmux("new-session", "-d", "-s", "w", "-x", "80", "-y", "24", "sh")
	t.Cleanup(func() { _ = exec.Command(program, "-S", socket, "kill-server").Run() }) // it has ended, unless the test failed
	tmux("send-keys", "-t", "w", "heartbeat watch "+two(t)+"; echo left with $?", "Enter")
	sees("> ci", "  mail", "no session", "keys  q quit")
	tmux("send-keys", "-t", "w", "Down", "Enter")
	sees("> waits", "job-3")
	tmux("resize-window", "-t", "w", "-x", "20", "-y", "5")
	sees("> ")
	tmux("resize-window", "-t", "w", "-x", "80", "-y", "24")
	tmux("send-keys", "-t", "w", "Escape")
	sees("> mail", "2 inboxes")
	tmux("send-keys", "-t", "w", "q")
	sees("left with 0")
	assert.NotContains(t, tmux("capture-pane", "-p", "-t", "w"), "2 inboxes")
	tmux("send-keys", "-t", "w", "exit", "Enter")
}
