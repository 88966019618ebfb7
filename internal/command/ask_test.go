package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWithPrompt(t *testing.T) {
	for command, want := range map[string]string{
		"claude --allowedTools Read Edit":      "claude PROMPT --allowedTools Read Edit",
		"claude --append-system-prompt exec":   "claude PROMPT --append-system-prompt exec",
		"codex exec --skip-git-repo-check":     "codex exec PROMPT --skip-git-repo-check",
		"/opt/bin/codex -m gpt-5 exec --color": "/opt/bin/codex -m gpt-5 exec PROMPT --color",
		"codex":                                "codex PROMPT",
	} {
		got := strings.Join(withPrompt(strings.Fields(command)), " ")
		assert.Equal(t, want, strings.Replace(got, "Say that you are ready.", "PROMPT", 1))
	}
}
