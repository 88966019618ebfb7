package client

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/model"
)

// buildHost is the heartbeat-host beside the hook.
func buildHost() (string, error) {
	stop, err := buildOnce()
	return filepath.Join(filepath.Dir(stop), "heartbeat-host"), err
}

// hosting is a guild, and a workspace whose client heartbeat-host runs.
type hosting struct {
	*Workspace
	t      *testing.T
	guild  *guild.Guild
	url    string
	host   string
	root   string
	config map[string]any
}

func newHosting(t *testing.T, script model.Script) *hosting {
	t.Helper()
	m, err := model.Start(script)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	h := &hosting{Workspace: New(t, Find(t), m), t: t}
	h.host, err = buildHost()
	require.NoError(t, err)
	h.guild, err = guild.Open(guild.Options{Cancelled: true, Strict: true})
	require.NoError(t, err)
	server := httptest.NewServer(h.guild)
	t.Cleanup(func() {
		require.NoError(t, h.guild.Close())
		server.Close()
	})
	h.root, h.url = filepath.Dir(h.Home), server.URL
	env := map[string]string{}
	for _, kv := range h.environ(nil) {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	env["CLAUDE_CODE_MAX_RETRIES"] = "0"
	h.config = map[string]any{
		"sessionId": "ses-1", "guildToolUrl": h.url, "dbPath": filepath.Join(h.root, "nexus.db"), "logDir": filepath.Join(h.root, "logs"),
		"claudeArgs": []string{"--setting-sources", "user", "--dangerously-skip-permissions"}, "cwd": h.Project, "env": env,
		"prompt": "first", "tools": []any{}, "startedAt": "2026-11-22T10:00:00Z", "provider": "claude-code",
	}
	return h
}

// run hosts the session until its end.
func (h *hosting) run(flags ...string) {
	h.t.Helper()
	text, err := json.Marshal(h.config)
	require.NoError(h.t, err)
	cmd := exec.Command(h.host, append([]string{"run", "--claude", h.binary}, flags...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.Home, "XDG_STATE_HOME=" + filepath.Join(h.root, "state"), "IS_SANDBOX=1"}
	cmd.Stdin = strings.NewReader(string(text))
	out, err := cmd.CombinedOutput()
	require.NoError(h.t, err, "%s\n%s", out, h.log())
	assert.Empty(h.t, string(out))
}

func (h *hosting) log() string {
	text, err := os.ReadFile(filepath.Join(h.root, "logs/ses-1.log"))
	require.NoError(h.t, err)
	return string(text)
}

func (h *hosting) report() map[string]json.RawMessage {
	s, _ := h.guild.Session("ses-1")
	return s.Report
}

// A prompt that calls a tool of the guild, and is answered.
func TestHosted(t *testing.T) {
	h := newHosting(t, func(r model.Request) model.Reply {
		if len(r.ToolResults) > 0 {
			return model.Text("the tool said " + r.ToolResults[0])
		}
		return model.Tool("mcp__nexus-guild__writ-list", map[string]any{"limit": 3})
	})
	h.guild.Expect("ses-1", "writ-list")
	h.guild.AddTool(guild.Tool{Name: "writ-list", Method: "GET", Answer: json.RawMessage(`["a writ"]`)})
	h.config["tools"] = []any{map[string]any{
		"name": "writ-list", "description": "lists writs", "method": "GET",
		"params": map[string]any{"properties": map[string]any{"limit": map[string]any{"type": "number"}}},
	}}
	h.run()
	report := h.report()
	assert.Equal(t, `"completed"`, string(report["status"]))
	assert.Contains(t, string(report["output"]), "the tool said")
	s, _ := h.guild.Session("ses-1")
	assert.Equal(t, 1, s.Calls["writ-list"])
}

// The same in a terminal, with the messages of the client's transcript.
func TestHostedInTerminal(t *testing.T) {
	h := newHosting(t, func(r model.Request) model.Reply { return model.Text("answer to " + r.UserText) })
	h.guild.Expect("ses-1")
	h.config["claudeArgs"] = []string{"--setting-sources", "user"} // a dialog would ask about the risks of more
	h.run("--pty")
	report := h.report()
	assert.Equal(t, `"completed"`, string(report["status"]), h.log())
	assert.Contains(t, string(report["output"]), "first")
	s, _ := h.guild.Session("ses-1")
	assert.GreaterOrEqual(t, s.Messages, 4)
}
