package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude"
)

func TestHasReply(t *testing.T) {
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	first := `{"type":"assistant","message":{"content":[{"type":"text","text":"done <&> \"x\""}]}}` + "\n"
	noise := `{"type":"user","message":{"content":"` + strings.Repeat("long ", 100_000) + `"}}` + "\n"
	last := `{"type":"assistant","message":{"content":[{"type":"text","text":"again"}]}}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(first+noise+last), 0o600))
	behind, whole := int64(len(first)), int64(len(first+noise+last))
	assert.True(t, claude.HasReply(path, 0, behind, `done <&> "x"`))
	assert.False(t, claude.HasReply(path, behind, whole, `done <&> "x"`), "before the turn")
	assert.True(t, claude.HasReply(path, behind, whole, "again"))
	assert.True(t, claude.HasReply(path, 0, whole+100, "again"), "it was cut off since")
	assert.False(t, claude.HasReply(path, 0, whole, "long"), "a person's words")
	assert.False(t, claude.HasReply(path+"x", 0, whole, "again"))
	assert.False(t, claude.HasReply(path, whole, behind, "again"))
}

// A person ends a turn with Esc, or with No to a tool. The client's note has the prompt of the turn that ended.
func TestInterrupted(t *testing.T) {
	note := func(promptID, text string) string {
		return `{"type":"user","promptId":"` + promptID + `","message":{"role":"user","content":[{"type":"text","text":"` + text + `"}]},"uuid":"u"}` + "\n"
	}
	const esc, no = "[Request interrupted by user]", "[Request interrupted by user for tool use]"
	for name, c := range map[string]struct {
		before, since string
		want          bool
	}{
		"nothing yet":             {note("p", esc), "", false},
		"Esc":                     {"", note("p", esc), true},
		"a tool refused":          {"", note("p", no), true},
		"and another prompt":      {"", note("p", esc) + note("q", "go on"), true},
		"another prompt's turn":   {"", note("q", esc), false},
		"quoted by a person":      {"", note("p", "what is "+esc), false},
		"the model's words":       {"", strings.Replace(note("p", esc), "user", "assistant", 1), false},
		"handed over with a hook": {"", strings.Replace(note("p", esc), `"type"`, `"isMeta":true,"type"`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "transcript.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(c.before+c.since), 0o600))
			from := int64(len(c.before))
			assert.Equal(t, c.want, claude.Interrupted(path, "p", from))
			assert.False(t, claude.Interrupted(path, "", from), "a client that names no prompts")
		})
	}
}
