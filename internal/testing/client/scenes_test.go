package client

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/screen"
	launched "heartbeat/internal/supervise/client"
	"heartbeat/internal/testing/model"
)

// scene is a state of the client, and how it gets there.
type scene struct {
	kind    screen.Kind
	word    string // tells scenes of one kind apart
	shows   string // what must be on the screen as well, as where a turn has ended
	begun   bool   // SessionStart has fired then
	prepare func(*staged)
	answer  model.Script // of the model; nil for Echo
	types   string       // submitted once the input line is there; enter for nothing but that
}

// staged is the workspace of a scene, before the client starts in it.
type staged struct {
	*Workspace
	Options
	t *testing.T
}

// remember changes what the client remembers of its first-run questions.
func (s *staged) remember(change func(memory map[string]any)) {
	memory := s.firstRun()
	change(memory)
	s.writeJSON(filepath.Join(s.Home, ".claude.json"), memory)
}

func (s *staged) env(entries ...string) { s.Env = append(s.Env, entries...) }

func (s *staged) write(path, text string) {
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

const noKey = "ANTHROPIC_API_KEY="

// scenes are all states that can be provoked without a network.
var scenes = []scene{
	{kind: screen.Untrusted, prepare: untrusted},
	{kind: screen.Untrusted, word: "hooks", prepare: func(s *staged) {
		untrusted(s)
		s.WriteProjectSettings(map[string]any{
			"permissions": map[string]any{"allow": []string{"Bash"}}, "env": map[string]any{"A": "b"}, "hooks": hooksOf("Stop", "true"),
		})
		s.writeJSON(filepath.Join(s.Project, ".mcp.json"), servers("files"))
	}},
	{kind: screen.Onboarding, word: "theme", prepare: func(s *staged) {
		fresh(s)
		s.env(anthropic(s.t)...)
	}},
	{kind: screen.Onboarding, word: "login", shows: "Select login method", types: enter, prepare: func(s *staged) {
		fresh(s)
		s.env(noKey)
		s.env(anthropic(s.t)...)
	}},
	{kind: screen.Offline, prepare: fresh},
	{kind: screen.APIKey, prepare: func(s *staged) {
		s.remember(func(m map[string]any) { delete(m, "customApiKeyResponses") })
	}},
	{kind: screen.Dialog, word: "bypass", prepare: func(s *staged) {
		s.Args = []string{"--dangerously-skip-permissions"}
		s.env("IS_SANDBOX=1") // without it root is refused
	}},
	{kind: screen.BypassRefused, prepare: func(s *staged) {
		if os.Geteuid() != 0 {
			s.t.Skip("only root is refused")
		}
		s.Args = []string{"--dangerously-skip-permissions"}
	}},
	{kind: screen.Dialog, word: "mcp-one", prepare: func(s *staged) {
		s.writeJSON(filepath.Join(s.Project, ".mcp.json"), servers("files"))
	}},
	{kind: screen.Dialog, word: "mcp-two", prepare: func(s *staged) {
		s.writeJSON(filepath.Join(s.Project, ".mcp.json"), servers("files", "web"))
	}},
	{kind: screen.Dialog, word: "imports", prepare: func(s *staged) {
		elsewhere := filepath.Join(filepath.Dir(s.Home), "elsewhere.md")
		s.write(elsewhere, "Be brief.\n")
		s.write(filepath.Join(s.Project, "CLAUDE.md"), "See @"+elsewhere+"\n")
	}},
	{kind: screen.Dialog, word: "settings-json", prepare: func(s *staged) {
		s.write(filepath.Join(s.Project, ".claude", "settings.json"), "{not JSON")
	}},
	{kind: screen.Dialog, word: "settings-values", prepare: func(s *staged) {
		s.WriteProjectSettings(map[string]any{"permissions": map[string]any{"defaultMode": "nonsense"}, "hooks": map[string]any{"Stop": "x"}})
	}},
	{kind: screen.Dialog, word: "config", prepare: func(s *staged) { s.write(filepath.Join(s.Home, ".claude.json"), "{broken") }},
	{kind: screen.Dialog, word: "picker", prepare: func(s *staged) { s.Args = []string{"--resume"} }},
	{kind: screen.NoConversation, word: "continue", prepare: func(s *staged) { s.Args = []string{"--continue"} }},
	{kind: screen.NoConversation, word: "resume", prepare: func(s *staged) { s.Resume = "00000000-0000-4000-8000-000000000000" }},
	{kind: screen.Usage, word: "option", prepare: func(s *staged) { s.Args = []string{"--alowedTools=Read"} }},
	{kind: screen.Usage, word: "value", prepare: func(s *staged) { s.Args = []string{"--permission-mode", "nonsense"} }},
	{kind: screen.Usage, word: "servers", prepare: func(s *staged) { s.Args = []string{"--mcp-config", "nowhere.json"} }},

	{kind: screen.Ready, shows: "shift+tab to cycle", begun: true},
	{kind: screen.Ready, word: "nokey", shows: "shift+tab to cycle", begun: true, prepare: func(s *staged) { s.env(noKey) }},
	{kind: screen.Ready, word: "answered", shows: "answer to:", begun: true, types: "hello"},
	{kind: screen.Ready, word: "quoting", shows: "That was all", begun: true, types: "hello", answer: says(aboutDialogs)},
	{kind: screen.Ready, word: "failed", shows: "API Error", begun: true, types: "hello", prepare: asking,
		answer: func(model.Request) model.Reply { return model.Overloaded() }},
	{kind: screen.Busy, begun: true, types: "hello", answer: hangs},
	{kind: screen.Busy, word: "argument", begun: true, answer: hangs, prepare: func(s *staged) { s.Args = []string{"do the work"} }},
	{kind: screen.Login, word: "none", begun: true, types: "hello", prepare: func(s *staged) { s.env(noKey) }},
	{kind: screen.Login, word: "command", begun: true, types: "/login", prepare: func(s *staged) { s.env(noKey) }},
	{kind: screen.Login, word: "invalid", begun: true, types: "hello", prepare: asking, answer: refuses(401, "authentication_error")},
	{kind: screen.Login, word: "forbidden", begun: true, types: "hello", prepare: asking, answer: refuses(403, "permission_error")},
	{kind: screen.Permission, word: "bash", begun: true, types: "hello", prepare: asking,
		answer: uses("Bash", map[string]any{"command": "touch here && rm there", "description": "change files"})},
	{kind: screen.Permission, word: "fetch", begun: true, types: "hello", prepare: asking,
		answer: uses("WebFetch", map[string]any{"url": "http://example.com/", "prompt": "what"})},
	{kind: screen.Permission, word: "plan", begun: true, types: "hello", answer: uses("ExitPlanMode", map[string]any{"plan": "# Plan"}),
		prepare: func(s *staged) { s.Args = []string{"--permission-mode", "plan"} }},
	{kind: screen.Question, word: "one", begun: true, types: "hello", answer: uses("AskUserQuestion", questions("Way"))},
	{kind: screen.Question, word: "two", begun: true, types: "hello", answer: uses("AskUserQuestion", questions("Way", "How"))},
	{kind: screen.Dialog, word: "auto", begun: true, types: "hello",
		answer: uses("WebFetch", map[string]any{"url": "http://example.com/", "prompt": "what"})},
	{kind: screen.Dialog, word: "model", begun: true, types: "/model"},
}

func fresh(s *staged) { require.NoError(s.t, os.Remove(filepath.Join(s.Home, ".claude.json"))) }

func untrusted(s *staged) { s.remember(func(m map[string]any) { delete(m, "projects") }) }

// asking has the client ask before it runs a tool, and not try again what failed.
func asking(s *staged) {
	s.Args = []string{"--permission-mode", "default"}
	s.env(NoRetries)
}

func hooksOf(event, command string) map[string]any {
	return map[string]any{event: []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": command}}}}}
}

func servers(names ...string) map[string]any {
	all := map[string]any{}
	for _, name := range names {
		all[name] = map[string]any{"command": "true"}
	}
	return map[string]any{"mcpServers": all}
}

func hangs(model.Request) model.Reply { return model.Hang() }

func says(text string) model.Script {
	return func(model.Request) model.Reply { return model.Text(text) }
}

func refuses(status int, kind string) model.Script {
	return func(model.Request) model.Reply { return model.Error(status, kind, "no") }
}

// uses is a model that wants to use one tool.
func uses(tool string, input map[string]any) model.Script {
	return func(r model.Request) model.Reply {
		if len(r.ToolResults) > 0 {
			return model.Text("done")
		}
		return model.Tool(tool, input)
	}
}

func questions(headers ...string) map[string]any {
	option := func(label string) any { return map[string]any{"label": label, "description": "go " + label} }
	var all []any
	for _, header := range headers {
		all = append(all, map[string]any{"question": "Which " + header + "?", "header": header, "multiSelect": false,
			"options": []any{option("left"), option("right")}})
	}
	return map[string]any{"questions": all}
}

// aboutDialogs is a reply about dialogs, which is none.
const aboutDialogs = "```\n" +
	"────────────────────────────────────────\n" +
	" Accessing workspace:\n\n ❯ No, exit\n   Yes, I trust this folder\n\n Enter to confirm · Esc to cancel\n\n" +
	" Do you want to use this API key?\n\n ❯ 1. Yes\n   2. No\n\n Esc to cancel\n" +
	"```\nNot logged in · Please run /login\n\nThat was all"

// play brings the client to a scene and returns the session once it is there, with
// the bytes that it had printed by then.
func (c scene) play(ctx context.Context, s *staged) (*Session, []byte) {
	if c.prepare != nil {
		c.prepare(s)
	}
	session := s.Interactive(s.Options)
	if c.types != "" {
		require.NoError(s.t, session.WaitReady(ctx))
		require.NoError(s.t, session.Submit(ctx, strings.TrimSuffix(c.types, enter)))
	}
	return session, c.reached(ctx, s, session)
}

// reached waits for the scene to be on the screen.
func (c scene) reached(ctx context.Context, s *staged, session *Session) []byte {
	terminal := screen.New(int(s.Rows), int(s.Cols))
	for drawn := 0; ; {
		data, changed, ended := session.screen.state()
		_, _ = terminal.Write(data[drawn:])
		drawn = len(data)
		text := terminal.Text()
		if launched.RecogniseClaude(text).Kind == c.kind && containsFlat(text, c.shows) {
			return data
		}
		require.False(s.t, ended, "the client ended before %q was recognised; its screen:\n%s", c.kind, text)
		select {
		case <-changed:
		case <-ctx.Done():
			require.Fail(s.t, "the client's screen is not recognised", "as %q, but as %q:\n%s", c.kind, launched.RecogniseClaude(text).Kind, text)
		}
	}
}
