package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	pluginFolder = "../../../plugin"
	pluginScript = pluginFolder + "/scripts/heartbeat.sh"
)

func readInto(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, to), path)
}

// The marketplace offers the plugin by the name that it has, and the licence is ours.
func TestPluginIsOffered(t *testing.T) {
	var plugin struct{ Name, Version, License string }
	readInto(t, pluginFolder+"/.claude-plugin/plugin.json", &plugin)
	var market struct {
		Plugins []struct{ Name, Source string }
	}
	readInto(t, "../../../.claude-plugin/marketplace.json", &market)
	require.Len(t, market.Plugins, 1)
	assert.Equal(t, plugin.Name, market.Plugins[0].Name)
	assert.Equal(t, "./plugin", market.Plugins[0].Source)
	assert.Regexp(t, `^\d+\.\d+\.\d+$`, plugin.Version)
	ours, err := os.ReadFile("../../../LICENSE")
	require.NoError(t, err)
	its, err := os.ReadFile(pluginFolder + "/LICENSE")
	require.NoError(t, err)
	assert.Equal(t, string(ours), string(its))
}

// What the slash commands call is there, and no words of a person stand in a shell line.
func TestPluginCommandsExist(t *testing.T) {
	paths, err := filepath.Glob(pluginFolder + "/commands/*.md")
	require.NoError(t, err)
	require.Len(t, paths, 7)
	h := helps{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		text := string(raw)
		assert.NotContains(t, text, "!`", "%s runs a command before anybody has seen the words", path)
		found := 0
		for i, part := range strings.Split(text, "```") {
			if i%2 == 0 {
				continue
			}
			assert.NotContains(t, part, "$ARGUMENTS", path)
			for _, c := range calls(strings.ReplaceAll(part, `"${CLAUDE_PLUGIN_ROOT}/scripts/heartbeat.sh"`, "heartbeat")) {
				found++
				require.NotEmpty(t, c.verbs, path)
				assertExists(t, h, path, c)
			}
		}
		assert.NotZero(t, found, path)
	}
}

// pluginProject is a project with an inbox, under a name that a shell would trip over, and a folder of
// programs that print their arguments.
func pluginProject(t *testing.T) (project, programs string) {
	t.Helper()
	project, programs = filepath.Join(t.TempDir(), `a "b' $(c)`), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(project, "work"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(project, "work", "inbox.jsonl"), nil, 0o600))
	for _, name := range []string{"heartbeat", "heartbeat-stop"} {
		text := "#!/bin/sh\nprintf '<%s>' " + name + ` "$@"` + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(programs, name), []byte(text), 0o700))
	}
	return project, programs
}

// plugged runs the plugin's script.
func plugged(t *testing.T, project, programs string, env []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command(pluginScript, args...)
	cmd.Env = append([]string{"PATH=" + programs + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "CLAUDE_PROJECT_DIR=" + project}, env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestPluginScript(t *testing.T) {
	project, programs := pluginProject(t)
	inbox := filepath.Join(project, "work", "inbox.jsonl")
	const print = "CLAUDE_CODE_ENTRYPOINT=sdk-cli"
	const terminal = "CLAUDE_CODE_ENTRYPOINT=cli"
	blocks := "<heartbeat-stop><--inbox><" + inbox + "><--max-blocks>"
	wakes := "<heartbeat-stop><--inbox><" + inbox + "><--rewake>"
	for _, c := range []struct {
		env, args []string
		out       string
	}{
		{[]string{print}, []string{"hook", "turn"}, blocks + "<8>"},
		{[]string{print}, []string{"hook", "note"}, blocks + "<8>"},
		{[]string{print}, []string{"hook", "wake"}, ""},
		{[]string{print, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0"}, []string{"hook", "turn"}, blocks + "<0>"},
		{[]string{print, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=5"}, []string{"hook", "turn"}, blocks + "<5>"},
		{[]string{print, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=;id"}, []string{"hook", "turn"}, blocks + "<8>"},
		{[]string{terminal}, []string{"hook", "turn"}, ""},
		{[]string{terminal}, []string{"hook", "wake"}, wakes},
		{[]string{terminal}, []string{"hook", "note"}, wakes},
		{nil, []string{"send", "$(id)", "a b'\""}, "<heartbeat><send><--inbox><" + inbox + "><$(id)><a b'\">"},
		{nil, []string{"run", "resume", "r1"}, "<heartbeat><run><resume><--inbox><" + inbox + "><r1>"},
		{nil, []string{"mcp"}, "<heartbeat><mcp><--inbox><" + inbox + ">"},
		{[]string{print, "HEARTBEAT_INBOX=none.jsonl"}, []string{"hook", "turn"}, ""},
	} {
		out, errs, status := plugged(t, project, programs, c.env, c.args...)
		assert.Equal(t, []any{c.out, "", 0}, []any{out, errs, status}, "%v %v", c.env, c.args)
	}
	settings := filepath.Join(project, ".claude", "settings.json")
	require.NoError(t, os.Mkdir(filepath.Dir(settings), 0o700))
	require.NoError(t, os.WriteFile(settings, []byte(`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/a \"b/heartbeat-stop"}]}]}}`), 0o600))
	out, errs, status := plugged(t, project, programs, []string{print}, "hook", "turn")
	assert.Equal(t, []any{"", "", 0}, []any{out, errs, status}, "beside a hook of the settings")
}

// Where a program is missing the plugin says so in one sentence, and never wakes a session
// by that.
func TestPluginWithoutPrograms(t *testing.T) {
	if path, err := exec.LookPath("/usr/local/bin/heartbeat-stop"); err == nil {
		t.Skipf("%s is installed", path)
	}
	project, _ := pluginProject(t)
	for _, args := range [][]string{{"hook", "wake"}, {"hook", "note"}, {"mcp"}, {"status"}, {"run", "status"}} {
		out, errs, status := plugged(t, project, t.TempDir(), nil, args...)
		assert.Empty(t, out, args)
		assert.Equal(t, 1, strings.Count(errs, "\n"), errs)
		assert.Contains(t, errs, "is not installed", args)
		assert.Contains(t, errs, "go install ./cmd/...", args)
		assert.Equal(t, 1, status, args)
	}
}

// An inbox that came with a repository gives a session nothing to do.
func TestPluginLeavesTrackedInbox(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	project, programs := pluginProject(t)
	for _, args := range [][]string{{"init", "-q"}, {"add", "work/inbox.jsonl"}} {
		out, err := exec.Command("git", append([]string{"-C", project}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	out, errs, status := plugged(t, project, programs, nil, "hook", "wake")
	assert.Equal(t, []any{"", "", 0}, []any{out, errs, status})
}

// An inbox that Git tracks is left alone, and so is one of which Git does not say it.
func TestPluginLeavesARepositorysInbox(t *testing.T) {
	script, err := filepath.Abs(pluginScript)
	require.NoError(t, err)
	project, bin := t.TempDir(), t.TempDir()
	git := func(args ...string) {
		out, err := exec.Command("git", append([]string{"-C", project, "-c", "user.name=x", "-c", "user.email=x@y"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, os.Mkdir(filepath.Join(project, "work"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(project, "work/inbox.jsonl"), []byte("hello\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "heartbeat-stop"), []byte("#!/bin/sh\necho asked\n"), 0o700))
	hook := func() (stdout, stderr string) {
		cmd := exec.Command(script, "hook", "turn")
		var out, err strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &err
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + bin, "CLAUDE_PROJECT_DIR=" + project, "CLAUDE_CODE_ENTRYPOINT=sdk-cli"}
		_ = cmd.Run() // its status is in what it says
		return out.String(), err.String()
	}
	asked, said := hook()
	assert.Equal(t, "asked\n", asked, said)
	git("init", "-q")
	asked, said = hook()
	assert.Equal(t, "asked\n", asked, said)
	git("add", ".")
	asked, said = hook()
	assert.Empty(t, asked+said)
	// As of another user's repository, git ends with 128.
	require.NoError(t, os.WriteFile(filepath.Join(project, ".git/index"), []byte("broken"), 0o600))
	asked, said = hook()
	assert.Empty(t, asked)
	assert.Contains(t, said, "cannot be told, so it is left alone")

	// Git takes a folder of a clone for a repository of its own, with a config that names commands.
	bare, ran := filepath.Join(project, "sub"), filepath.Join(bin, "ran")
	require.NoError(t, os.CopyFS(bare, os.DirFS(filepath.Join(project, ".git"))))
	require.NoError(t, os.CopyFS(filepath.Join(bare, "work"), os.DirFS(filepath.Join(project, "work"))))
	require.NoError(t, os.Remove(filepath.Join(bare, "index")))
	require.NoError(t, os.WriteFile(filepath.Join(bare, "config"), []byte("[core]\nbare = false\nworktree = "+bare+"\nfsmonitor = touch "+ran+"\n"), 0o600))
	clone := project
	project = bare
	asked, said = hook()
	assert.Empty(t, asked)
	assert.Contains(t, said, "cannot be told, so it is left alone")
	require.NoError(t, os.Remove(filepath.Join(clone, ".git/index")))
	project = clone
	git("add", ".")
	link := filepath.Join(bin, "link")
	require.NoError(t, os.Symlink(bare, link))
	for _, project = range []string{bare, link} {
		asked, said = hook()
		assert.Empty(t, asked+said, "the clone tracks it")
	}
	assert.NoFileExists(t, ran)
}
