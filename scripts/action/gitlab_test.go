package action_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heartbeat/internal/testing/action"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// component is the one of GitLab, with its inputs filled in.
type component struct {
	Image        string
	Variables    map[string]struct{ Value, Expand string }
	BeforeScript []string `yaml:"before_script"`
	Script       []string
	Cache        struct{ Paths []string }
	Artifacts    struct{ Paths []string }
}

var input = regexp.MustCompile(`\$\[\[ inputs\.([\w-]+) \]\]`)

// filled reads the template. What is filled in is filled into what was parsed, as GitLab does.
func filled(t *testing.T, with map[string]string) (c component) {
	t.Helper()
	file, err := os.Open(filepath.Join(repository, "templates/heartbeat.yml"))
	require.NoError(t, err)
	defer file.Close()
	from := yaml.NewDecoder(file)
	var head struct {
		Spec struct {
			Inputs map[string]struct{ Default, Description string }
		}
	}
	var jobs map[string]component
	require.NoError(t, from.Decode(&head))
	require.NoError(t, from.Decode(&jobs))
	require.ErrorIs(t, from.Decode(&jobs), io.EOF)
	require.Len(t, jobs, 1)
	for name := range with {
		require.Contains(t, head.Spec.Inputs, name)
	}
	fill := func(text string) string {
		return input.ReplaceAllStringFunc(text, func(found string) string {
			name := input.FindStringSubmatch(found)[1]
			require.Contains(t, head.Spec.Inputs, name)
			if value, is := with[name]; is {
				return value
			}
			return head.Spec.Inputs[name].Default
		})
	}
	for _, job := range jobs {
		c = job
	}
	for name, v := range c.Variables {
		assert.Equal(t, "false", v.Expand, name)
		v.Value = fill(v.Value)
		c.Variables[name] = v
	}
	return c
}

// onGitLab is a job of a merge request, in a repository with a commit.
func onGitLab(t *testing.T) *job {
	t.Helper()
	j := newJob(t)
	j.forge.Login = "project_4_bot"
	j.forge.Token = "gitlab-token"
	j.Env = append(j.Env[:3:3], "ANTHROPIC_API_KEY="+key, "NO_PROXY=127.0.0.1", "CI=true", "GITLAB_CI=true", "CI_API_V4_URL="+j.forge.URL, "CI_PROJECT_ID=4",
		"CI_MERGE_REQUEST_IID=7", "CI_COMMIT_SHA="+j.SHA, "HEARTBEAT_TOKEN=gitlab-token")
	out, err := exec.Command("git", "-C", j.Checkout, "init", "-q").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return j
}

// runs runs the component's script.
func (j *job) runs(with map[string]string) (log string, status int) {
	j.t.Helper()
	c := filled(j.t, with)
	here, err := filepath.Abs(repository)
	require.NoError(j.t, err)
	cmd := exec.Command("bash", "-eo", "pipefail", "-c", "steps=$1\n"+strings.Join(c.Script, "\n"), "bash", here)
	cmd.Dir, cmd.Env = j.Checkout, j.Env
	for name, v := range c.Variables {
		cmd.Env = append(cmd.Env, name+"="+v.Value)
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(j.t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A job that runs three times asks the model once, and writes one note. What GitLab keeps is
// the inbox, the reply and the outcome.
func TestGitLab(t *testing.T) {
	j := onGitLab(t)
	with := map[string]string{"prompt": "be hostile $(touch pwned) \"'\n- `touch pwned`", "comment": "true", "allowed-tools": "Edit"}
	for range 3 {
		log, status := j.runs(with)
		require.Zero(t, status, log)
		assert.NotContains(t, log, "\x1b")
	}
	assert.Equal(t, 1, j.asked("be hostile"))
	assert.NoFileExists(t, filepath.Join(j.Checkout, "pwned"))
	comments := j.forge.Comments()
	require.Len(t, comments, 1)
	assert.Contains(t, comments[0].Body, "**heartbeat: answered**")
	reply, err := os.ReadFile(filepath.Join(j.Checkout, ".heartbeat/reply.md"))
	require.NoError(t, err)
	assert.Equal(t, hostile, string(reply))
	outcome, err := os.ReadFile(filepath.Join(j.Checkout, ".heartbeat/outcome.env"))
	require.NoError(t, err)
	assert.Contains(t, string(outcome), "HEARTBEAT_OUTCOME=answered\n")
	started, err := os.ReadFile(filepath.Join(j.Checkout, "started"))
	require.NoError(t, err)
	assert.NotContains(t, string(started), "gitlab-token")
	left, err := filepath.Glob(filepath.Join(j.temporary(), "heartbeat.*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// temporary is the job's folder for temporary files.
func (j *job) temporary() string {
	for _, kv := range j.Env {
		if dir, is := strings.CutPrefix(kv, "TMPDIR="); is {
			return dir
		}
	}
	return ""
}

// What fails ends the job with the status of heartbeat ask, and a later one tries anew.
func TestGitLabFails(t *testing.T) {
	j := onGitLab(t)
	with := map[string]string{"prompt": "dies unless ../once"}
	log, status := j.runs(with)
	assert.Equal(t, 3, status, log)
	log, status = j.runs(with)
	require.Zero(t, status, log)
	assert.Empty(t, j.forge.Comments())

	log, status = j.runs(map[string]string{"prompt": "hi", "timeout": "1o"})
	assert.Equal(t, 1, status)
	assert.Contains(t, log, `invalid argument "1o"`)
	log, status = j.runs(map[string]string{"prompt": ""})
	assert.Equal(t, 1, status)
	assert.Contains(t, log, "heartbeat: say what the agent is to do")
	assert.Zero(t, j.asked("hi"))

	j.forge.Token = "another" // than the job has
	log, status = j.runs(map[string]string{"prompt": "told", "comment": "true"})
	assert.Equal(t, 78, status, log)
	assert.Equal(t, 1, j.asked("told"))
}

// State that came with the repository is not believed.
func TestGitLabKeepsToItsOwn(t *testing.T) {
	j := onGitLab(t)
	keep := filepath.Join(j.Checkout, ".heartbeat")
	require.NoError(t, os.Symlink(t.TempDir(), keep))
	log, status := j.runs(map[string]string{"prompt": "hi"})
	assert.Equal(t, 1, status)
	assert.Contains(t, log, ".heartbeat is a link")
	require.NoError(t, os.Remove(keep))
	require.NoError(t, os.Mkdir(keep, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(keep, "reply.md"), nil, 0o600))
	out, err := exec.Command("git", "-C", j.Checkout, "add", "-f", ".heartbeat").CombinedOutput()
	require.NoError(t, err, "%s", out)
	log, status = j.runs(map[string]string{"prompt": "hi"})
	assert.Equal(t, 1, status)
	assert.Contains(t, log, "take it out of the repository")
	require.NoError(t, os.WriteFile(filepath.Join(j.Checkout, ".git/index"), []byte("broken"), 0o600))
	log, status = j.runs(map[string]string{"prompt": "hi"})
	assert.Equal(t, 78, status)
	assert.Contains(t, log, "git does not say")
	assert.Zero(t, j.asked("hi"))
}

// The component has an input for each of the action that is not GitHub's alone, its scripts
// have none in them, and what it keeps is what the script makes.
func TestComponent(t *testing.T) {
	m, err := action.Read(repository)
	require.NoError(t, err)
	given := map[string]string{}
	for name := range m.Inputs {
		if name != "token" && name != "api-key" { // variables of the project
			given[name] = "given"
		}
	}
	c := filled(t, given)
	for _, script := range [][]string{c.BeforeScript, c.Script} {
		require.NotEmpty(t, script)
		text := strings.Join(script, "\n")
		assert.NotContains(t, text, "$[[")
		cmd := exec.Command("bash", "-n")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
	assert.Equal(t, []string{".heartbeat/"}, c.Cache.Paths)
	assert.Equal(t, []string{".heartbeat/reply.md"}, c.Artifacts.Paths)
	assert.Equal(t, m.Inputs["client-version"].Default, filled(t, nil).Variables["ASK_CLIENT_VERSION"].Value)
}
