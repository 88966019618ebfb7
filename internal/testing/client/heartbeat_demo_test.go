package client

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// The demo runs the main job with the client on the PATH, and kills it during an answer.
func TestHeartbeatDemo(t *testing.T) {
	texts := []string{"name the three states of an entry", "and keep it short", "say goodbye"}
	asked := 0
	r := newRigWith(t, func(request model.Request) model.Reply {
		if strings.HasSuffix(strings.TrimSpace(request.UserText), texts[1]) {
			if asked++; asked == 1 {
				return model.Hang()
			}
		}
		return model.Text("done")
	})
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
	t.Log(stdout.String())
	assert.Regexp(t, `(?s)\nanswered 1 .*\ndelivered 2 .*\nkilled +SIGKILL .*\ndelivered 2 .*\nanswered 2 .*\nanswered 3 `, stdout.String())
	assert.Contains(t, stdout.String(), "Every prompt was answered once, in order, although a session was killed.")

	for i, text := range texts {
		assert.Equal(t, []int{1, 2, 1}[i], r.arrivals(text), text)
	}
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	for _, entry := range left {
		assert.False(t, strings.HasPrefix(entry.Name(), "heartbeat-demo-"), "the workspace is left: %s", entry.Name())
	}
}
