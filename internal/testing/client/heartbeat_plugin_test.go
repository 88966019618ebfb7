package client

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// pluginRig has the plugin, installed from this checkout by the client's own commands, in
// a project with an inbox where the plugin looks for it, and no settings.
func pluginRig(t *testing.T) *rig {
	t.Helper()
	return pluginRigOf(t, newRig(t, own))
}

func pluginRigWith(t *testing.T, script model.Script) *rig {
	t.Helper()
	return pluginRigOf(t, newRigWith(t, script))
}

func pluginRigOf(t *testing.T, r *rig) *rig {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("seeing a hook wait needs /proc")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	for _, args := range [][]string{
		{"validate", "--strict", root},
		{"validate", "--strict", "--profile", "directory", filepath.Join(root, "plugin")},
		{"marketplace", "add", root},
		{"install", "heartbeat@heartbeat"},
	} {
		cmd := r.command(Options{}, append([]string{"plugin"}, args...)...)
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "claude plugin %v: %s", args, said)
	}
	r.inbox = filepath.Join(r.Project, "work", "inbox.jsonl")
	require.NoError(t, os.Mkdir(filepath.Dir(r.inbox), 0o700))
	return r
}

// withPlugin has the binaries on the PATH, and no settings.
func (r *rig) withPlugin(env ...string) Options {
	return Options{Env: append([]string{"PATH=" + filepath.Dir(r.stop) + ":" + os.Getenv("PATH")}, env...)}
}

// A session at a terminal is woken with each entry: no cap applies.
func TestHeartbeatPluginAtTerminal(t *testing.T) {
	ctx := minutes(t)
	r := pluginRig(t)
	all := some(20)
	r.add(all...)
	s := r.attended(ctx, r.withPlugin())
	r.answered(ctx, len(all))
	r.settled(answeredOnce(all...)...)
	r.quit(ctx, s)
}

// Under -p a session ends in order before the client would swallow a block, and the next
// one goes on.
func TestHeartbeatPluginPrints(t *testing.T) {
	ctx := minutes(t)
	r := pluginRig(t)
	all := some(blockCap + 3)
	r.add(all...)
	r.drain(ctx, prompt(1), r.withPlugin())
	r.logged(answeredOnce(all[:blockCap]...)...)
	assert.Nil(t, r.flying())
	r.drain(ctx, prompt(2), r.withPlugin())
	r.settled(answeredOnce(all...)...)
}

// The same session goes on, too, at its next prompt.
func TestHeartbeatPluginResumed(t *testing.T) {
	ctx := minutes(t)
	r := pluginRig(t)
	all := some(blockCap + 3)
	r.add(all...)
	r.drain(ctx, prompt(1), r.withPlugin())
	r.logged(answeredOnce(all[:blockCap]...)...)
	results, _ := r.outcomes()
	o := r.withPlugin()
	o.Resume = results[all[0].text].SessionID
	r.drain(ctx, prompt(2), o)
	r.settled(answeredOnce(all...)...)
}

// With the cap lifted, one session drains all.
func TestHeartbeatPluginPrintsWithoutCap(t *testing.T) {
	ctx := minutes(t)
	r := pluginRig(t)
	all := some(blockCap + 3)
	r.add(all...)
	r.drain(ctx, prompt(1), r.withPlugin(NoBlockCap))
	r.settled(answeredOnce(all...)...)
}

// Where the settings wire the hook as well, that one delivers, each entry once.
func TestHeartbeatPluginBesideSettings(t *testing.T) {
	ctx := minutes(t)
	r := pluginRig(t)
	all := some(blockCap + 3)
	r.installIn(r.projectSettings())
	r.add(all...)
	r.drain(ctx, prompt(1), r.withPlugin())
	r.settled(answeredOnce(all...)...)
}

// Without the binaries the session is as it is without the plugin.
func TestHeartbeatPluginWithoutBinaries(t *testing.T) {
	ctx := minutes(t)
	r := pluginRig(t)
	all := some(1)
	r.add(all...)
	r.drain(ctx, prompt(1), Options{Env: []string{"PATH=/usr/bin:/bin"}})
	assert.NoFileExists(t, r.path(".results.jsonl"))
	assert.Nil(t, r.flying())
}

// The plugin's tools are an agent's, of the session's own entry.
func TestHeartbeatPluginTools(t *testing.T) {
	r := pluginRigWith(t, saysDone("mcp__plugin_heartbeat_heartbeat__task_done").script())
	r.add(lookAt("[e1]"))
	o := r.withPlugin()
	o.Args = []string{"--allowedTools=mcp__plugin_heartbeat_heartbeat"}
	r.drain(minutes(t), prompt(1), o)
	r.saidDone()
}

// commandLine is the line for a shell in what a slash command expands to.
func commandLine(t testing.TB, text string) string {
	_, block, found := strings.Cut(text, "```sh\n")
	require.True(t, found, text)
	line, _, _ := strings.Cut(block, "\n```")
	return line
}

// A person types the slash commands. The model does what they say, to the letter, and what
// a person wrote reaches the inbox whatever is in it.
func TestHeartbeatPluginCommands(t *testing.T) {
	const hostile = `say "it's $(touch /tmp/never) done" && \` + "`false`" + ` [x]`
	note, asked := filepath.Join(t.TempDir(), "text"), ""
	r := pluginRigWith(t, func(q model.Request) model.Reply {
		said := strings.Join(q.ToolResults, "; ")
		if said == "" {
			asked = q.UserText
		}
		_, text, sends := strings.Cut(asked, "The text:\n\n")
		switch {
		case sends && said == "":
			return model.Tool("Write", map[string]any{"file_path": note, "content": strings.TrimRight(text, "\n")})
		case sends && strings.Contains(said, "File created"):
			line := strings.ReplaceAll(commandLine(t, asked), "THE TEMPORARY FILE", note)
			return model.Tool("Bash", map[string]any{"command": line})
		case said == "" && strings.Contains(asked, "```sh"):
			return model.Tool("Bash", map[string]any{"command": commandLine(t, asked)})
		}
		return model.Text("it said: " + said)
	})
	ctx := minutes(t)
	o := r.withPlugin("IS_SANDBOX=1")
	o.Args = []string{"--dangerously-skip-permissions"}
	ask := func(command string) string {
		r.t.Helper()
		return r.drain(ctx, command, o).Stdout
	}
	assert.Contains(t, ask("/heartbeat:pause for the deploy"), "paused")
	assert.Regexp(t, `it said: [0-9a-z]{26}`, ask("/heartbeat:send "+hostile))
	assert.Contains(t, ask("/heartbeat:status"), "paused")
	text, err := os.ReadFile(r.inbox)
	require.NoError(t, err)
	var sent struct{ Prompt string }
	require.NoError(t, json.Unmarshal(text, &sent), string(text))
	assert.Equal(t, hostile, sent.Prompt)
	assert.NoFileExists(t, "/tmp/never")
	ask("/heartbeat:resume") // and the session that went on with the delivery gets the entry
	assert.Contains(t, ask("/heartbeat:results"), "it's $(touch /tmp/never) done")
	assert.NoFileExists(t, "/tmp/never")
}
