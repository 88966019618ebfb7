package client

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/testing/action"
	"heartbeat/internal/testing/model"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A job that uses the action three times asks the model once and writes one comment. The
// client starts on a machine where nobody has answered its questions.
func TestHeartbeatAction(t *testing.T) {
	p := inPipeline(within(t), t, func(tag string, _ int) model.Reply {
		return model.Text("::error::" + ownReply(tag)).By("claude-sonnet-4-5")
	})
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	forge := action.NewForge(t, "job-token")
	job := &action.Job{
		Checkout: p.Project, Temp: filepath.Join(root, "temp"), SHA: "c0ffee", Run: 1,
		Cache: action.NewCache(filepath.Join(root, "cache")), Event: map[string]any{"pull_request": map[string]any{"number": 7}},
		Env: append(p.environ(p.env), "GITHUB_API_URL="+forge.URL, "NO_PROXY=127.0.0.1", "CLAUDE_CONFIG_DIR="),
	}
	for job.Attempt = range 3 {
		require.NoError(t, job.Begin())
		u, err := job.Use("../../..", map[string]string{"prompt": "[e1] is it clear?", "comment": "true", "max-cost": "1", "model": "claude-sonnet-4-5"})
		require.NoError(t, err)
		require.Zero(t, u.Status, u.Log)
		assert.Equal(t, "answered", u.Outputs["outcome"])
		assert.Equal(t, "::error::"+ownReply("[e1]"), u.Outputs["reply"])
		if !assert.Regexp(t, `^0\.0000\d\d$`, u.Outputs["cost"]) {
			explain(t, root, p.Home)
		}
		assert.Empty(t, u.Commands)
	}
	assert.Equal(t, 2, p.turns(), "the first prompt of the session, and ours")
	require.Len(t, forge.Comments(), 1)
	assert.Contains(t, forge.Comments()[0].Body, "**heartbeat: answered** · cost: $0.0")
}

// explain prints the lines of prices, events and transcripts below some folders.
func explain(t *testing.T, dirs ...string) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read is left out
			if err == nil && d.Type().IsRegular() && filepath.Ext(path) == ".jsonl" {
				text, _ := os.ReadFile(path)
				t.Logf("%s:\n%s", path, text)
			}
			return nil
		})
	}
}
