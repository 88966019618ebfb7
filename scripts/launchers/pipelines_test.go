package launchers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// example is the part of a pipeline file that a shell runs.
type example struct {
	name    string
	env     map[string]string // of ask
	ask     string
	first   string   // answers the questions of the client's first start
	collect string   // keeps what the agent did
	all     []string // every script
}

func examples(t *testing.T) []example { return []example{github(t), gitlab(t)} }

func parse(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, into))
}

func github(t *testing.T) example {
	t.Helper()
	var workflow struct {
		On   map[string]any
		Jobs map[string]struct {
			RunsOn string `yaml:"runs-on"`
			Steps  []struct {
				Name, Uses, Run string
				Env             map[string]string
			}
		}
	}
	parse(t, "github-actions.yml", &workflow)
	require.NotEmpty(t, workflow.On)
	job := workflow.Jobs["ask"]
	require.NotEmpty(t, job.RunsOn)
	e := example{name: "github"}
	for _, step := range job.Steps {
		assert.True(t, (step.Uses == "") != (step.Run == ""), "a step uses an action, or runs a script: %+v", step)
		e.all = append(e.all, step.Run)
		switch step.Name {
		case "Ask":
			e.env, e.ask = step.Env, step.Run
		case "Collect what the agent did":
			e.collect = step.Run
		case "Answer the questions of the first start":
			e.first = step.Run
		}
	}
	require.NotEmpty(t, e.ask)
	require.NotEmpty(t, e.first)
	return e
}

func gitlab(t *testing.T) example {
	t.Helper()
	var pipeline map[string]struct {
		Image        string
		Variables    map[string]string
		BeforeScript []string `yaml:"before_script"`
		Script       []string
		Rules        []map[string]string
		AfterScript  []string `yaml:"after_script"`
		Artifacts    struct{ Paths []string }
	}
	parse(t, "gitlab-ci.yml", &pipeline)
	job := pipeline["ask-an-agent"]
	assert.NotEmpty(t, job.Image)
	assert.NotEmpty(t, job.Rules)
	assert.Equal(t, []string{"review.md", "results.jsonl", "dead-letters.jsonl"}, job.Artifacts.Paths)
	require.NotEmpty(t, job.BeforeScript)
	require.NotEmpty(t, job.Script)
	return example{
		name: "gitlab", env: job.Variables, ask: strings.Join(job.Script, "\n"),
		first: job.BeforeScript[len(job.BeforeScript)-1], collect: strings.Join(job.AfterScript, "\n"),
		all: slices.Concat([]string{job.Image}, job.BeforeScript, job.Script, job.AfterScript),
	}
}

// Bash can parse each script.
func TestPipelineScriptsAreValid(t *testing.T) {
	for _, e := range examples(t) {
		for _, run := range e.all {
			cmd := exec.Command("bash", "-n")
			cmd.Stdin = strings.NewReader(run)
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s: %s\n%s", e.name, run, out)
		}
	}
}

// job runs an example's scripts in a scratch checkout, as its pipeline would.
type job struct {
	t   *testing.T
	dir string
	env []string
}

func newJob(t *testing.T, e example) *job {
	t.Helper()
	home, dir := t.TempDir(), t.TempDir()
	here, err := os.Getwd()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(filepath.Dir(filepath.Dir(here)), filepath.Join(dir, ".heartbeat")))
	j := &job{t: t, dir: dir, env: []string{
		"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + t.TempDir(), "CI=true",
		"ANTHROPIC_API_KEY=sk-ant-0123456789-0123456789", "RUNNER_TEMP=" + home, "CI_PROJECT_DIR=" + dir,
		"GITHUB_STEP_SUMMARY=" + filepath.Join(home, "summary.md"), "GITHUB_SHA=c0ffee", "CI_COMMIT_SHA=c0ffee",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}}
	ours := strings.NewReplacer("${{ runner.temp }}", home, "/tmp/work", filepath.Join(home, "work"), "$CI_PROJECT_DIR", dir, "${{ secrets.ANTHROPIC_API_KEY }}", "sk-ant-0123456789-0123456789")
	for name, value := range e.env {
		j.env = append(j.env, name+"="+ours.Replace(value))
	}
	j.passes("git init -q . && echo 'hello' >README && git add README && git commit -q -m 'Say hello'")
	return j
}

func (j *job) home() string {
	for _, kv := range j.env {
		if home, found := strings.CutPrefix(kv, "HOME="); found {
			return home
		}
	}
	return ""
}

// run stops at the first command that fails, as GitHub and GitLab do.
func (j *job) run(script string) (string, error) {
	cmd := exec.Command("bash", "-eo", "pipefail", "-c", strings.ReplaceAll(script, "/opt/heartbeat/", ".heartbeat/"))
	cmd.Dir, cmd.Env = j.dir, j.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (j *job) passes(script string) string {
	j.t.Helper()
	out, err := j.run(script)
	require.NoError(j.t, err, out)
	return out
}

// No key is an argument, since every user of the machine can read those. Whatever is
// installed has a fixed version and runs no install script. No file that only heartbeat
// reads is kept.
func TestPipelinesKeepToThemselves(t *testing.T) {
	for _, e := range examples(t) {
		whole := strings.Join(e.all, "\n")
		assert.NotContains(t, whole, `"$ANTHROPIC_API_KEY"`, e.name)
		installs := 0
		for line := range strings.Lines(whole) {
			if strings.Contains(line, "npm install --") {
				installs++
				assert.Contains(t, line, " --ignore-scripts ", e.name)
				assert.Regexp(t, `@\d+\.\d+\.\d+\n?$`, line, e.name)
			}
		}
		assert.Equal(t, 1, installs, e.name)
		assert.NotEmpty(t, e.collect, e.name)
	}
	raw, err := os.ReadFile("github-actions.yml")
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "hidden")
	for _, used := range regexp.MustCompile(`uses: (.*)`).FindAllStringSubmatch(string(raw), -1) {
		assert.Regexp(t, `@v\d+\.\d+\.\d+$`, used[1])
	}
}

// The job passes if the agent approves, and fails if it does not.
func TestPipelinesAsk(t *testing.T) {
	for _, e := range examples(t) {
		t.Run(e.name, func(t *testing.T) {
			j := newJob(t, e)
			out := j.passes(e.ask)
			assert.Contains(t, out, "heartbeat: review-c0ffee was answered\n")
			assert.Contains(t, out, "APPROVE\n")
			review, err := os.ReadFile(filepath.Join(j.dir, "review.md"))
			require.NoError(t, err)
			assert.Contains(t, string(review), "+hello", "the agent was shown the change")

			j.passes("git commit -q --allow-empty -m 'something to REJECT'")
			j.env = append(j.env, "GITHUB_SHA=beef", "CI_COMMIT_SHA=beef")
			out, err = j.run(e.ask)
			assert.Error(t, err)
			assert.Contains(t, out, "review-beef was answered")

			j.passes(strings.ReplaceAll(e.collect, "$CI_PROJECT_DIR", j.dir))
			files, err := filepath.Glob(filepath.Join(j.dir, "*.jsonl"))
			require.NoError(t, err)
			if e.name == "github" {
				files, err = filepath.Glob(filepath.Join(j.home(), "did", "*.jsonl"))
				require.NoError(t, err)
			}
			require.Len(t, files, 2)
			results, err := os.ReadFile(files[1])
			require.NoError(t, err)
			assert.Equal(t, 2, strings.Count(string(results), "\"reply\""), "%s", results)
		})
	}
}

// If its session dies, the job fails with the status of the step.
func TestPipelinesFail(t *testing.T) {
	for _, e := range examples(t) {
		t.Run(e.name, func(t *testing.T) {
			j := newJob(t, e)
			j.passes("git commit -q --allow-empty -m 'dies unless /dev/null/it'")
			out, err := j.run(e.ask)
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, 3, exit.ExitCode(), out)
			assert.Contains(t, out, "became a dead letter")
		})
	}
}

// The job answers what the client asks on its first start.
func TestPipelinesAnswerFirstStart(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not here")
	}
	for _, e := range examples(t) {
		t.Run(e.name, func(t *testing.T) {
			j := newJob(t, e)
			j.passes(e.first)
			dir, err := filepath.EvalSymlinks(j.dir)
			require.NoError(t, err)
			assert.JSONEq(t, `{
				"hasCompletedOnboarding": true, "theme": "dark",
				"customApiKeyResponses": {"approved": ["123456789-0123456789"], "rejected": []},
				"projects": {"`+dir+`": {"hasTrustDialogAccepted": true}}
			}`, j.passes("cat ~/.claude.json"))
		})
	}
}
