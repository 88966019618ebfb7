package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func TestWithPrompt(t *testing.T) {
	for command, want := range map[string]string{
		"claude --allowedTools Read Edit":      "claude PROMPT --allowedTools Read Edit",
		"claude --append-system-prompt exec":   "claude PROMPT --append-system-prompt exec",
		"codex exec --skip-git-repo-check":     "codex exec PROMPT --skip-git-repo-check",
		"/opt/bin/codex -m gpt-5 exec --color": "/opt/bin/codex -m gpt-5 exec PROMPT --color",
		"codex e -m gpt-5":                     "codex e PROMPT -m gpt-5",
		"codex":                                "codex PROMPT",
	} {
		got := strings.Join(withPrompt(strings.Fields(command)), " ")
		assert.Equal(t, want, strings.Replace(got, "Say that you are ready.", "PROMPT", 1))
	}
}

// A step that waited for its turn ends with its own prompt: the next one is another step's, whose time has just begun.
func TestTurnsUntil(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	assert.Equal(t, 1, turnsUntil(box, "mine"), "the launcher finds out")
	require.NoError(t, os.WriteFile(path, []byte(`{"id":"old","prompt":"old"}
{"id":"late","prompt":"late","expires_at":"2020-01-01T00:00:00Z"}

{"id":"mine","prompt":"mine"}
{"id":"theirs","prompt":"theirs"}
`), 0o600))
	for id, want := range map[string]int{"old": 1, "mine": 2, "theirs": 3, "settled": 1} {
		assert.Equal(t, want, turnsUntil(box, id), id)
	}
}
