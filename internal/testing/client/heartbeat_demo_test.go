package client

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The demo runs the main job with the client on the PATH.
func TestHeartbeatDemo(t *testing.T) {
	r := newRig(t, own)
	bin, tmp := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(r.binary, filepath.Join(bin, "claude")))
	cmd := exec.CommandContext(within(t), r.heartbeat(), "demo", "--claude")
	// The demo takes care itself that the client is nobody's child.
	cmd.Env = r.environ([]string{
		"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "TMPDIR=" + tmp,
		"CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=another", "CLAUDE_CODE_CHILD_SESSION=1",
	})
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s\n%s", &stdout, &stderr)
	assert.Contains(t, stdout.String(), "every prompt was answered once, in order")

	replies := 0
	for text := range strings.Lines(stdout.String()) {
		if strings.HasPrefix(text, "{") {
			var l line
			require.NoError(t, json.Unmarshal([]byte(text), &l))
			assert.Equal(t, 1, l.Attempt)
			assert.NotEmpty(t, l.Reply)
			replies++
		}
	}
	assert.Equal(t, 3, replies)
	assert.Equal(t, 4, r.turns())
	for _, text := range []string{"name the three states of an entry", "and keep it short", "say goodbye"} {
		assert.Equal(t, 1, r.arrivals(text), text)
	}
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	for _, entry := range left {
		assert.False(t, strings.HasPrefix(entry.Name(), "heartbeat-demo-"), "the workspace is left: %s", entry.Name())
	}
}
