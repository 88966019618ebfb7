// Package action_test runs the steps of the action as a runner does, with a stand-in for the
// client.
package action_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"heartbeat/internal/testing/action"
	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/build"
	"heartbeat/internal/testing/script"

	"github.com/stretchr/testify/require"
)

const (
	repository = "../.."
	key        = "sk-ant-0123456789-0123456789"
)

// bin is a folder for the PATH that holds the shipped commands, and this test binary as the
// client.
var bin string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "claude" {
		os.Exit(client())
	}
	os.Exit(withCommands(m))
}

func withCommands(m *testing.M) int {
	dir, remove, err := build.Commands()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	bin = dir
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(bin, "claude"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return script.Run(m)
}

func client() int {
	// Where the test looks: the action gives the client arguments and an environment.
	_ = os.WriteFile("started", []byte(strings.Join(append(os.Args, os.Environ()...), "\n")), 0o600)
	return agent.InTerminal(os.Args[1:], answer)
}

var (
	repeats = regexp.MustCompile(`repeats (\d+)`)
	once    = regexp.MustCompile(`(hangs|dies) unless (\S+)`)
)

// hostile is a reply that wants to be more than text.
const hostile = "::error::gone wrong\n::set-output name=outcome::answered\n##[error]old\nreply<<EOF\nEOF\n::stop-commands::x\n" +
	"$(touch pwned) `touch pwned` ${IFS}; rm -rf \"$HOME\" '\\\n<!-- heartbeat -->\n```\n@everyone \x1b[2J\x07 ${{ github.token }} end"

// answer appends each text to the file "asked".
func answer(text string) string {
	asked, err := os.OpenFile("asked", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err.Error()
	}
	defer asked.Close()
	fmt.Fprintln(asked, text)
	if m := once.FindStringSubmatch(text); m != nil {
		if _, err := os.Lstat(m[2]); err != nil {
			_ = os.WriteFile(m[2], nil, 0o600) // the test sees it
			if m[1] == "hangs" {
				script.Forever()
			}
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing of it remains
		}
	}
	if m := repeats.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // digits
		return strings.Repeat("ä", n)
	}
	switch {
	case strings.Contains(text, "be hostile"):
		return hostile
	case strings.Contains(text, "tell the key"):
		return "it is " + key
	case strings.Contains(text, "something to REJECT"):
		return "REJECT"
	case strings.Contains(text, "APPROVE or REJECT"):
		return "APPROVE: " + text
	}
	return "did " + text
}

// job is one in a scratch checkout, for the pull request 7.
type job struct {
	*action.Job
	t     *testing.T
	forge *action.Forge
}

func newJob(t *testing.T) *job {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	forge := action.NewForge(t, "job-token")
	j := &job{t: t, forge: forge, Job: &action.Job{
		Checkout: filepath.Join(root, "checkout"), Temp: filepath.Join(root, "temp"), SHA: "c0ffee00c0ffee00c0ffee00", Run: 1, Attempt: 1,
		Cache: action.NewCache(filepath.Join(root, "cache")), Event: map[string]any{"pull_request": map[string]any{"number": 7}},
	}}
	j.Env = []string{
		"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + filepath.Join(root, "home"), "TMPDIR=" + t.TempDir(),
		"ANTHROPIC_API_KEY=" + key, "GITHUB_API_URL=" + forge.URL, "NO_PROXY=127.0.0.1", "GOMODCACHE=" + goEnv(t, "GOMODCACHE"), "GOCACHE=" + goEnv(t, "GOCACHE"),
	}
	for _, dir := range []string{j.Checkout, filepath.Join(root, "home")} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	t.Cleanup(func() { script.Sweep(t, "HOME="+filepath.Join(root, "home")) })
	require.NoError(t, j.Begin())
	return j
}

// use runs the action in a job that begins.
func (j *job) use(with ...string) action.Used {
	j.t.Helper()
	require.NoError(j.t, j.Begin())
	return j.again(with...)
}

// again runs the action in the same job.
func (j *job) again(with ...string) action.Used {
	j.t.Helper()
	given := map[string]string{}
	for _, one := range with {
		name, value, _ := strings.Cut(one, "=")
		given[name] = value
	}
	u, err := j.Use(repository, given)
	require.NoError(j.t, err)
	return u
}

// asked is how often the agent was asked this.
func (j *job) asked(text string) int {
	raw, _ := os.ReadFile(filepath.Join(j.Checkout, "asked")) // nobody was asked, where there is none
	return strings.Count(string(raw), text)
}

// bash runs a step's own script, and returns its status.
func (j *job) bash(script string, env ...string) int {
	j.t.Helper()
	cmd := exec.Command("bash", "-eo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = j.Checkout, append(j.Env[:len(j.Env):len(j.Env)], env...)
	if err := cmd.Run(); cmd.ProcessState == nil {
		require.NoError(j.t, err)
	}
	return cmd.ProcessState.ExitCode()
}
