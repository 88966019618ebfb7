package client

import (
	"bytes"
	"cmp"
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
	begun, hung := "", false
	r := newRigWith(t, func(request model.Request) model.Reply { // one request at a time
		session := sessionOf(request)
		begun = cmp.Or(begun, session)
		if session == begun && strings.HasSuffix(strings.TrimSpace(request.UserText), texts[1]) {
			hung = true
			return model.Hang()
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
	assert.Regexp(t, `(?s)\nanswered 1 .*\ndelivered 2 .*\nkilled +SIGKILL .*\nanswered 2 .*\nanswered 3 `, stdout.String())
	came := []int{1, 1, 1}
	if hung { // else the client was killed a second after the delivery, and had not asked yet
		assert.Regexp(t, `(?s)\nkilled +SIGKILL .*\ndelivered 2 .*\nanswered 2 `, stdout.String())
		came[1] = 2
	}
	assert.Contains(t, stdout.String(), "Every prompt was answered once, in order, although a session was killed.")

	for i, text := range texts {
		assert.Equal(t, came[i], r.arrivals(text), text)
	}
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	for _, entry := range left {
		assert.False(t, strings.HasPrefix(entry.Name(), "heartbeat-demo-"), "the workspace is left: %s", entry.Name())
	}
}
