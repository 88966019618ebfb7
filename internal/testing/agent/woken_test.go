package agent_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A session that sits at its prompt takes a turn for each text that its hook ends with.
func TestSessionIsWoken(t *testing.T) {
	a, dir := newAgent(t, "wake one", "wake two", "")
	quit := make(chan struct{})
	var texts []string
	a.Answer = func(text string) string {
		if texts = append(texts, text); len(texts) == 3 {
			close(quit)
		}
		return "did it"
	}
	require.NoError(t, a.RunWoken(context.Background(), "begin", quit))
	require.Len(t, texts, 3)
	assert.Equal(t, "begin", texts[0])
	assert.Regexp(t, `hook blocking error from command "Stop": (?s:.*)\none\n`, texts[1])
	assert.Contains(t, texts[2], "\ntwo\n")

	prompts, submitted := map[any]bool{}, 0
	for _, e := range lines(t, filepath.Join(dir, "events")) {
		if e["hook_event_name"] == "UserPromptSubmit" {
			submitted++
			prompts[e["prompt_id"]] = true
			assert.True(t, strings.HasPrefix(e["prompt"].(string), "begin") || strings.HasPrefix(e["prompt"].(string), "<task-notification>"))
		}
	}
	assert.Equal(t, 3, submitted)
	assert.Len(t, prompts, 3, "each turn has a prompt of its own")
}

func TestWokenSessionWithoutHook(t *testing.T) {
	a, _ := newAgent(t)
	a.Hook = []string{filepath.Join(t.TempDir(), "none")}
	assert.ErrorContains(t, a.RunWoken(context.Background(), "begin", nil), "none")
}
