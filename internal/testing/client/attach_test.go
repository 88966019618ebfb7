package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
	"heartbeat/internal/testing/seat"
)

// A session where nobody is asks for a permission: somebody attaches, sees what it asks and
// allows it, and leaves the session to itself.
func TestManagedAnsweredByAttaching(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	r := newRig(t, first("[e1]", model.Tool("Bash", map[string]any{"command": "touch " + made, "description": "make a file"}))).add(some(2)...)
	ctx := minutes(t)
	m := r.managingWith(ctx, []string{"--ask-patience", "1h", "--log", r.path("agent.log")}, "--permission-mode", "default")
	r.until(ctx, "the session waits for an answer", func() bool {
		text, _ := os.ReadFile(r.path("agent.log")) // it may come yet
		return strings.Contains(string(text), "the session waits for somebody who answers it")
	})
	r.says("waiting for a person", "permission_prompt")
	s := seat.New(t, 30, 100, besideHook(r.stop), "attach", "--inbox", r.inbox)
	s.Start()
	s.Sees("touch "+made, "1. Yes", "you type")
	s.Types("\r") // the first choice is to allow it once
	s.Prints("is over")
	s.Leaves(0)
	w, _ := m.wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 2, Sessions: 1}, w)
	assert.FileExists(t, made)
	require.Contains(t, s.Printed, "\x1b[?1049l")
	r.sessionsGone(ctx)
}
