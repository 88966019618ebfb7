package action_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heartbeat/internal/testing/action"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var pinned = regexp.MustCompile(`^[\w./-]+@v\d+\.\d+\.\d+$`)

// recipe reads a pipeline of scripts/launchers. docs/ci.md has the same text.
func recipe(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, "scripts/launchers", name))
	require.NoError(t, err)
	text := string(raw)
	for strings.HasPrefix(text, "#") {
		_, text, _ = strings.Cut(text, "\n")
	}
	assert.LessOrEqual(t, strings.Count(text, "\n"), 12, name)
	page, err := os.ReadFile(filepath.Join(repository, "docs/ci.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "\n```yaml\n"+text+"```\n", name)
	require.NoError(t, yaml.Unmarshal([]byte(text), into))
}

// A newcomer's workflow is 12 lines that work as they stand.
func TestWorkflow(t *testing.T) {
	var workflow struct {
		On          string
		Permissions map[string]string
		Jobs        map[string]struct {
			RunsOn string `yaml:"runs-on"`
			Steps  []action.Step
		}
	}
	recipe(t, "github-actions.yml", &workflow)
	assert.Equal(t, "pull_request", workflow.On)
	assert.Equal(t, map[string]string{"contents": "read", "pull-requests": "write"}, workflow.Permissions)
	steps := workflow.Jobs["ask"].Steps
	require.Len(t, steps, 2)
	for _, step := range steps {
		assert.Regexp(t, pinned, step.Uses)
	}
	j := newJob(t)
	j.Env = append(j.Env, "ANTHROPIC_API_KEY=")
	var with []string
	for name, value := range steps[1].With {
		with = append(with, name+"="+strings.ReplaceAll(value, "${{ secrets.ANTHROPIC_API_KEY }}", key))
	}
	u := j.use(with...)
	require.Zero(t, u.Status, u.Log)
	assert.Equal(t, "did Is the README clear? Say why.\n", u.Outputs["reply"])
	assert.Len(t, j.forge.Comments(), 1)
}

// And so is the part of a pipeline.
func TestPipeline(t *testing.T) {
	var pipeline struct {
		Include []struct {
			Component string
			Inputs    map[string]string
		}
	}
	recipe(t, "gitlab-ci.yml", &pipeline)
	require.Len(t, pipeline.Include, 1)
	assert.Regexp(t, `/heartbeat@v\d+\.\d+\.\d+$`, pipeline.Include[0].Component)
	j := onGitLab(t)
	log, status := j.runs(pipeline.Include[0].Inputs)
	require.Zero(t, status, log)
	assert.Len(t, j.forge.Comments(), 1)
}

// A review passes its reply on as text, and fails where the agent does not approve.
func TestReview(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs/ci.md"))
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "A review that can fail the job:\n\n```yaml\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "```")
	var steps []action.Step
	require.NoError(t, yaml.Unmarshal([]byte(text), &steps))
	require.Len(t, steps, 4)
	assert.Contains(t, steps[1].Run, `> "$RUNNER_TEMP/change"`)
	j := newJob(t)
	for change, passes := range map[string]bool{"a good change": true, "something to REJECT": false} {
		require.NoError(t, j.Begin())
		require.NoError(t, os.WriteFile(filepath.Join(j.Temp, "change"), []byte(change), 0o600))
		u := j.again("prompt="+steps[2].With["prompt"], "prompt-file="+strings.ReplaceAll(steps[2].With["prompt-file"], "${{ runner.temp }}", j.Temp))
		require.Zero(t, u.Status, u.Log)
		status := j.bash(steps[3].Run, "REPLY="+strings.ReplaceAll(steps[3].Env["REPLY"], "${{ steps.review.outputs.reply-file }}", u.Outputs["reply-file"]))
		assert.Equal(t, passes, status == 0, u.Outputs["reply"])
	}
}
