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

func TestSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	first := `{"type":"assistant","message":{"content":[{"type":"text","text":"done <&> \"x\""}]}}` + "\n"
	noise := `{"type":"user","message":{"content":"` + strings.Repeat("long ", 100_000) + `"}}` + "\n"
	last := `{"type":"assistant","message":{"content":[{"type":"text","text":"again"}]}}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(first+noise+last), 0o600))
	behind, whole := int64(len(first)), int64(len(first+noise+last))
	assert.True(t, claude.Said(path, 0, behind, `done <&> "x"`))
	assert.False(t, claude.Said(path, behind, whole, `done <&> "x"`), "before the turn")
	assert.True(t, claude.Said(path, behind, whole, "again"))
	assert.True(t, claude.Said(path, 0, whole+100, "again"), "it was cut off since")
	assert.False(t, claude.Said(path, 0, whole, "long"), "a person's words")
	assert.False(t, claude.Said(path+"x", 0, whole, "again"))
	assert.False(t, claude.Said(path, whole, behind, "again"))
}
