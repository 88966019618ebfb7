package action_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"heartbeat/internal/testing/action"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// A job that runs three times asks the model once, and writes one comment.
func TestThreeTimes(t *testing.T) {
	j := newJob(t)
	for j.Attempt = range 3 {
		u := j.use("prompt=Is the README clear?", "comment=true")
		require.Zero(t, u.Status, u.Log)
		assert.Equal(t, "answered", u.Outputs["outcome"])
		assert.Equal(t, "did Is the README clear?\n", u.Outputs["reply"])
		assert.Regexp(t, `^c0ffee00c0ff-[0-9a-f]{16}$`, u.Outputs["id"])
		assert.Contains(t, u.Log, "did Is the README clear?")
		assert.Contains(t, u.Summary, "**heartbeat: answered**")
		whole, err := os.ReadFile(u.Outputs["reply-file"])
		require.NoError(t, err)
		assert.Equal(t, u.Outputs["reply"], string(whole))
		assert.Empty(t, u.Commands)
	}
	assert.Equal(t, 1, j.asked("Is the README clear?"))
	assert.Equal(t, 1, j.Cache.Len())
	comments := j.forge.Comments()
	require.Len(t, comments, 1)
	body := comments[0].Body
	assert.Regexp(t, `^<!-- heartbeat [0-9a-f]{64} -->\n\*\*heartbeat: answered\*\*`, body)
	assert.Contains(t, body, "git checkout c0ffee00c0ffee00c0ffee00\nheartbeat ask --id=c0ffee00c0ff-")
	assert.Contains(t, body, "\n---\n\ndid Is the README clear?")
	assert.NotContains(t, body, "was answered", "a line of the log")

	// Another prompt is other work, without a new id in the workflow.
	u := j.use("prompt=Is the code clear?", "comment=true")
	require.Zero(t, u.Status, u.Log)
	assert.Equal(t, 1, j.asked("Is the code clear?"))
	assert.Len(t, j.forge.Comments(), 2)
}

// In one job the same prompt twice is the same work, and the cache is not asked for it.
func TestTwiceInAJob(t *testing.T) {
	j := newJob(t)
	require.Zero(t, j.use("prompt=hello").Status)
	u := j.again("prompt=hello")
	require.Zero(t, u.Status, u.Log)
	assert.NotContains(t, u.Ran, "restore")
	assert.NotContains(t, u.Ran, "save")
	assert.NotContains(t, u.Ran, "comment", "nobody asked for one")
	assert.Equal(t, 1, j.asked("hello"))
	assert.Empty(t, j.forge.Requests())
}

// An id of one's own is that of one prompt.
func TestOwnID(t *testing.T) {
	j := newJob(t)
	require.Zero(t, j.use("prompt=hello", "id=--review, `1`").Status)
	require.Zero(t, j.use("prompt=hello\n\n", "id=--review, `1`").Status, "the same as a block of YAML")
	assert.Equal(t, 1, j.asked("hello"))
	u := j.use("prompt=another", "id=--review, `1`", "comment=true")
	assert.Equal(t, 1, u.Status)
	assert.Equal(t, "refused", u.Outputs["outcome"])
	assert.Contains(t, u.Log, "it was not sent")
	assert.Zero(t, j.asked("another"))
	assert.Empty(t, j.forge.Comments())
}

// What is wrong with the inputs is said, and leaves nothing queued.
func TestUsage(t *testing.T) {
	j := newJob(t)
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(j.Checkout, "link")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(j.Checkout, "fifo"), 0o600))
	require.NoError(t, os.Symlink("/etc", filepath.Join(j.Checkout, "etc")))
	require.NoError(t, os.WriteFile(filepath.Join(j.Checkout, "blank"), []byte(" \n\n"), 0o600))
	for with, want := range map[string]struct {
		says   string
		failed string
		status int
	}{
		"prompt=hi|timeout=1o":                {`invalid argument "1o" for "--timeout"`, "ask", 1},
		"prompt=hi|max-cost=much":             {`invalid argument "much" for "--max-cost"`, "ask", 1},
		"prompt=hi|id=a\nb":                   {"on one line", "ask", 1},
		"prompt=":                             {"say what the agent is to do", "prepare", 1},
		"prompt-file=blank":                   {"the prompt is empty", "prepare", 1},
		"prompt-file=none":                    {"none is no file", "prepare", 1},
		"prompt-file=link":                    {"a link is not followed", "prepare", 1},
		"prompt-file=fifo":                    {"fifo is no file", "prepare", 1},
		"prompt-file=etc/passwd":              {"leads out of this folder", "prepare", 1},
		"prompt-file=../checkout/../temp/x":   {"is no file", "prepare", 1},
		"prompt=hi|comment=yes":               {"comment: say true, false, or the number", "prepare", 1},
		"prompt=hi|comment=true|token=":       {"there is no token to write it with", "prepare", 78},
		"prompt=hi|working-directory=nowhere": {"there is no folder nowhere", "prepare", 78},
		"prompt=hi|version=../x":              {"is no version", "install", 1},
	} {
		u := j.use(strings.Split(with, "|")...)
		assert.Equal(t, want.status, u.Status, "%s: %s", with, u.Log)
		assert.Equal(t, want.failed, u.Failed, with)
		assert.Contains(t, u.Log, want.says, with)
		queued, err := filepath.Glob(filepath.Join(j.Temp, "heartbeat", "*", "inbox", "inbox.jsonl"))
		require.NoError(t, err)
		assert.Empty(t, queued, with)
		if want.failed != "ask" {
			require.Len(t, u.Commands, 1, "%s: %s", with, u.Log)
			assert.Equal(t, "error", u.Commands[0].Name)
		}
	}
	assert.Zero(t, j.Cache.Len())
	assert.Zero(t, j.asked("hi"))
	assert.Empty(t, j.forge.Requests())
}

// Without a key nothing is begun.
func TestNoKey(t *testing.T) {
	j := newJob(t)
	j.Env = append(j.Env, "ANTHROPIC_API_KEY=")
	u := j.use("prompt=hi")
	assert.Equal(t, 78, u.Status)
	assert.Equal(t, []string{"prepare"}, u.Ran)
	assert.Contains(t, u.Log, "there is no key for the model")
	u = j.use("prompt=hi", "api-key="+key)
	require.Zero(t, u.Status, u.Log)
}

// A timeout has one outcome and one story; what it leaves is done by the next run.
func TestTimedOut(t *testing.T) {
	j := newJob(t)
	u := j.use("prompt=hangs unless ../once", "timeout=25s", "comment=true")
	assert.Equal(t, 124, u.Status)
	assert.Equal(t, "timed-out", u.Outputs["outcome"])
	assert.Empty(t, u.Outputs["reply"])
	assert.Equal(t, 1, strings.Count(u.Log, "heartbeat: c0ffee"), u.Log)
	assert.Contains(t, u.Log, "was not answered in time (--timeout 25s): it is a dead letter now")
	require.Len(t, j.forge.Comments(), 1)
	assert.Contains(t, j.forge.Comments()[0].Body, "**heartbeat: timed-out** (")

	j.Attempt++
	u = j.use("prompt=hangs unless ../once", "comment=true")
	require.Zero(t, u.Status, u.Log)
	assert.Equal(t, "answered", u.Outputs["outcome"])
	require.Len(t, j.forge.Comments(), 1)
	assert.Contains(t, j.forge.Comments()[0].Body, "**heartbeat: answered**")
	assert.Equal(t, 2, j.Cache.Len())
}

// A session that dies leaves a dead letter, and another run tries anew.
func TestDeadLetter(t *testing.T) {
	j := newJob(t)
	u := j.use("prompt=dies unless ../once")
	assert.Equal(t, 3, u.Status, u.Log)
	assert.Equal(t, "dead-lettered", u.Outputs["outcome"])
	j.Attempt++
	u = j.use("prompt=dies unless ../once")
	require.Zero(t, u.Status, u.Log)
}

// A check decides what the job comes to, and its output is what the agent goes on with.
func TestCheck(t *testing.T) {
	j := newJob(t)
	u := j.use("prompt=mend it", `check=echo "not yet: $HEARTBEAT_TRY"; test "$HEARTBEAT_TRY" -eq 2`, "comment=true")
	require.Zero(t, u.Status, u.Log)
	assert.Equal(t, "answered", u.Outputs["outcome"])
	assert.Equal(t, "passed", u.Outputs["check"])
	assert.Equal(t, 1, j.asked("not yet: 1"), "the second turn")
	assert.Contains(t, j.forge.Comments()[0].Body, "check: passed")

	u = j.use("prompt=say that it is done", "check=echo it is not; false")
	assert.Equal(t, 3, u.Status, u.Log)
	assert.Equal(t, "dead-lettered", u.Outputs["outcome"])
	assert.Equal(t, "failed", u.Outputs["check"])
	assert.Equal(t, 2, j.asked("it is not"), "three tries, of which the first has the prompt")
}

// No reply is more than text: not for the log, the outputs, the comment or a shell.
func TestHostileReply(t *testing.T) {
	j := newJob(t)
	u := j.use("prompt=be hostile $(touch pwned) `touch pwned` ${{ github.token }}", "comment=true",
		"allowed-tools=Bash(echo \"$(touch pwned)\":*)\n\n  Edit ", "model=$(touch pwned)")
	require.Zero(t, u.Status, u.Log)
	assert.Equal(t, hostile, u.Outputs["reply"])
	assert.Equal(t, "answered", u.Outputs["outcome"])
	assert.Empty(t, u.Commands)
	assert.NotContains(t, u.Log, "\x1b")
	for _, dir := range []string{j.Checkout, j.Temp, bin} {
		assert.NoFileExists(t, filepath.Join(dir, "pwned"))
	}
	body := j.forge.Comments()[0].Body
	before, reply, found := strings.Cut(body, "\n---\n\n")
	require.True(t, found)
	assert.Equal(t, hostile, reply)
	assert.Equal(t, 2, strings.Count(before, "````"))

	started, err := os.ReadFile(filepath.Join(j.Checkout, "started"))
	require.NoError(t, err)
	assert.Contains(t, string(started), "\n--allowedTools=Bash(echo \"$(touch pwned)\":*),Edit\n")
	assert.Contains(t, string(started), "\n--model=$(touch pwned)\n")
	for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY", "ASK_TOKEN", "ASK_KEY"} {
		assert.NotContains(t, string(started), "\n"+name+"=")
	}
	assert.NotContains(t, string(started), "job-token")
}

// A reply that is too long for an output is cut, which is said; the file has it all.
func TestLongReply(t *testing.T) {
	j := newJob(t)
	u := j.use("prompt=repeats 600000", "comment=true")
	require.Zero(t, u.Status, u.Log)
	reply, said, _ := strings.Cut(u.Outputs["reply"], "\n\n[cut: ")
	assert.Equal(t, "the reply has 600000 characters]", said)
	assert.True(t, reply == strings.Repeat("ä", 250000), "whole characters of its beginning")
	assert.Contains(t, u.Log, "the output is cut, and reply-file has it all")
	whole, err := os.ReadFile(u.Outputs["reply-file"])
	require.NoError(t, err)
	assert.Len(t, whole, 1200000)
	body := j.forge.Comments()[0].Body
	assert.Less(t, len([]rune(body)), 65536)
	assert.Contains(t, body, "[cut: the reply has 600000 characters]")
	assert.Less(t, len(u.Summary), 1<<20)
}

// The key of the model leaves the job by no way.
func TestSecretInAReply(t *testing.T) {
	j := newJob(t)
	u := j.use("prompt=tell the key", "comment=true")
	require.Zero(t, u.Status, u.Log)
	assert.Equal(t, "it is ***", u.Outputs["reply"])
	for _, text := range []string{u.Log, u.Summary, j.forge.Comments()[0].Body} {
		assert.NotContains(t, text, key)
	}
}

// A prompt and a file are one text.
func TestPromptFile(t *testing.T) {
	j := newJob(t)
	change := filepath.Join(j.Temp, "..", "change")
	require.NoError(t, os.WriteFile(change, []byte("+a line\n"), 0o600))
	u := j.use("prompt=Review this:", "prompt-file="+change)
	require.Zero(t, u.Status, u.Log)
	assert.Equal(t, "did Review this:\n\n+a line\n", strings.TrimRight(u.Outputs["reply"], "\n")+"\n")
}

// The metadata says what each input is for, no script has an expression in it, and what is used
// has a whole version.
func TestMetadata(t *testing.T) {
	m, err := action.Read(repository)
	require.NoError(t, err)
	assert.Equal(t, "composite", m.Runs.Using)
	for name, input := range m.Inputs {
		assert.NotEmpty(t, input.Description, name)
	}
	for name, output := range m.Outputs {
		assert.NotEmpty(t, output.Description, name)
	}
	used := 0
	for _, step := range m.Runs.Steps {
		assert.NotContains(t, step.Run, "${{", step.ID)
		if step.Uses != "" {
			used++
			assert.Regexp(t, pinned, step.Uses)
			continue
		}
		assert.Equal(t, "bash", step.Shell)
		name := regexp.MustCompile(`scripts/action/[a-z]+\.sh`).FindString(step.Run)
		info, err := os.Stat(filepath.Join(repository, name))
		require.NoError(t, err)
		assert.NotZero(t, info.Mode()&0o111, name)
	}
	assert.Equal(t, 2, used)
}
