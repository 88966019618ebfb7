package client

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// codexVariable names the environment variable that holds the absolute path of Codex.
const codexVariable = "HEARTBEAT_CODEX"

// codexRig is a rig whose client is Codex.
type codexRig struct {
	*rig
	home string // CODEX_HOME
}

// newCodexRig has an inbox and a Codex that is wired to it with these flags.
func newCodexRig(t *testing.T, script model.Script, flags ...string) *codexRig {
	t.Helper()
	r := bareCodexRig(t, script)
	r.wire(flags...)
	return r
}

// bareCodexRig has an inbox and a Codex that knows nothing of it. It skips the test where
// there is no Codex.
func bareCodexRig(t *testing.T, script model.Script) *codexRig {
	t.Helper()
	client := os.Getenv(codexVariable)
	if client == "" {
		t.Skip("this test runs the real Codex; set " + codexVariable + " to the absolute path of its binary to run it")
	}
	stop, err := buildOnce()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "queue")
	require.NoError(t, os.Mkdir(dir, 0o700))
	r := &codexRig{rig: &rig{Workspace: workspace(t, client, script), t: t, stop: stop, inbox: filepath.Join(dir, "inbox.jsonl"), signal: filepath.Join(dir, "signal")}}
	r.home = filepath.Join(r.Home, ".codex")
	require.NoError(t, os.Mkdir(r.home, 0o700))
	config := fmt.Sprintf(`model = "gpt-5"
model_provider = "loop"
[model_providers.loop]
name = "loop"
base_url = %q
wire_api = "responses"
env_key = "LOOP_KEY"
request_max_retries = 0
stream_max_retries = 0
[projects.%q]
trust_level = "trusted"
[features]
hooks = true
`, r.Model.URL()+"/v1", r.Project)
	require.NoError(t, os.WriteFile(filepath.Join(r.home, "config.toml"), []byte(config), 0o600))
	return r
}

// launching starts a launcher whose sessions are Codex's, without a terminal.
func (r *codexRig) launching(ctx context.Context, flags []string, arguments ...string) *managed {
	r.t.Helper()
	launch, err := buildLaunch()
	require.NoError(r.t, err)
	args := slices.Concat(r.workOn(), []string{"--grace", "20s"}, flags, []string{"--", r.binary}, arguments)
	return &managed{r.start(ctx, []string{"CODEX_HOME=" + r.home, "LOOP_KEY=x", "CI=1"}, "", launch, args...), r.rig}
}

// wire has the product write Codex's hooks.
func (r *codexRig) wire(flags ...string) {
	r.t.Helper()
	r.run("", "install", append([]string{"--agent", "codex", "--settings", filepath.Join(r.home, "hooks.json")}, flags...)...)
}

// rewire changes what was written, as a person would by hand.
func (r *codexRig) rewire(from, to string) {
	r.t.Helper()
	path := filepath.Join(r.home, "hooks.json")
	text, err := os.ReadFile(path)
	require.NoError(r.t, err)
	require.Contains(r.t, string(text), from)
	require.NoError(r.t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600))
}

// exec starts a session that ends with its work.
func (r *codexRig) exec(prompt string, args ...string) *Run {
	r.t.Helper()
	all := append([]string{"exec"}, args...)
	all = append(all, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", prompt)
	cmd := exec.Command(r.binary, all...)
	cmd.Dir = r.Project
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.Home, "CODEX_HOME=" + r.home, "LOOP_KEY=x", "TERM=dumb"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	run := &Run{}
	cmd.Stdout, cmd.Stderr = &run.stdout, &run.stderr
	must(r.t, cmd.Start())
	run.Process = r.watch(cmd)
	return run
}

// ends waits for a session's end, with this exit status.
func (r *codexRig) ends(ctx context.Context, run *Run, status int) {
	r.t.Helper()
	result, err := run.Wait(ctx)
	require.NoError(r.t, err, r.state())
	require.Equal(r.t, status, result.ExitCode, "%s\n%s", result.Stdout, result.Stderr)
}

// got is how often the model was asked a text.
func (r *codexRig) got(text string) (n int) {
	for _, q := range r.Model.MainRequests() {
		if q.UserText == text && len(q.ToolResults) == 0 {
			n++
		}
	}
	return n
}

// came checks every entry's fate, as settled does.
func (r *codexRig) came(fates ...fate) {
	r.t.Helper()
	r.had(r.got, fates...)
	assert.NoFileExists(r.t, r.path(".in-flight"))
}

// sessionPID is the process that the inbox knows of its newest session.
func (r *codexRig) sessionPID() int {
	r.t.Helper()
	var status struct {
		Session struct{ PID int }
	}
	require.NoError(r.t, json.Unmarshal([]byte(r.run("", "status", "--json")), &status))
	return status.Session.PID
}
