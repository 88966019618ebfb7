package agent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/agent"
)

func TestForTranscript(t *testing.T) {
	codex := agent.ForTranscript("/h/.codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-01a2.jsonl")
	assert.Equal(t, "Codex", codex.Name)
	assert.False(t, codex.CanBeWoken())
	assert.Positive(t, codex.MaxReason)
	for _, transcript := range []string{"", "/h/.claude/projects/x/6b1f.jsonl"} {
		claude := agent.ForTranscript(transcript)
		assert.Equal(t, "Claude Code", claude.Name)
		assert.Zero(t, claude.MaxReason)
	}
}

func TestIsProgram(t *testing.T) {
	assert.True(t, agent.IsProgram("claude"))
	assert.True(t, agent.IsProgram("codex"))
	assert.False(t, agent.IsProgram(""))
	assert.False(t, agent.IsProgram("bash"))
}
