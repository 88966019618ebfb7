package client

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// inExec and inTerminal are the ways to start a session of Codex.
var (
	inExec     = []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "hello"}
	inTerminal = []string{"--dangerously-bypass-approvals-and-sandbox", "hello"}
)

// The launcher drains an inbox with Codex, which asks nobody about its hook, and leaves
// neither a trace of that in Codex's files nor a process.
func TestCodexLaunched(t *testing.T) {
	for name, command := range map[string][]string{"exec": inExec, "terminal": inTerminal} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			all := some(5)
			r := bareCodexRig(t, answers(own).script())
			r.add(all...)
			w, log := r.launching(ctx, nil, command...).wait()
			assert.Equal(t, worked{Reason: "drained", Answered: 5, Sessions: 1}, w, "%q", log)
			r.came(answeredOnce(all...)...)
			r.sessionsGone(ctx)
			config, err := os.ReadFile(filepath.Join(r.home, "config.toml"))
			require.NoError(t, err)
			assert.NotContains(t, string(config), "heartbeat")
			assert.NotContains(t, string(config), "trusted_hash")
			assert.NoFileExists(t, filepath.Join(r.home, "hooks.json"))
			assert.NoDirExists(t, filepath.Join(r.home, "packages"), "it started a server")
		})
	}
}

// A client that is killed in the middle is followed by another one, which goes on, or begins
// anew.
func TestCodexLaunchedKilled(t *testing.T) {
	for name, c := range map[string]struct{ flags, command []string }{
		"exec":              {nil, inExec},
		"exec, resumed":     {[]string{"--resume"}, inExec},
		"terminal":          {nil, inTerminal},
		"terminal, resumed": {[]string{"--resume"}, inTerminal},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			all := some(4)
			r := bareCodexRig(t, first("[e2]", model.Hang()).script())
			r.add(all...)
			m := r.launching(ctx, append(c.flags, "--on-orphan", "retry"), c.command...)
			r.asked(ctx, "[e2]", 1)
			r.until(ctx, "it is in flight", func() bool { return r.flying() != nil })
			r.killClient()
			w, log := m.wait()
			assert.Equal(t, "drained", w.Reason, "%q", log)
			assert.Equal(t, []int{4, 2, 1}, []int{w.Answered, w.Sessions, w.Restarts}, "%q", log)
			fates := answeredOnce(all...)
			fates[1].attempt, fates[1].arrivals = 2, 2
			r.came(fates...)
			if rollouts := r.rollouts(); len(c.flags) > 0 {
				assert.Len(t, rollouts, 1, "the conversation goes on")
			} else {
				assert.Len(t, rollouts, 2)
			}
		})
	}
}

// rollouts are the files of Codex's conversations.
func (r *codexRig) rollouts() []string {
	r.t.Helper()
	all, err := filepath.Glob(filepath.Join(r.home, "sessions", "*", "*", "*", "rollout-*.jsonl"))
	require.NoError(r.t, err)
	return all
}

// A session that stays up gets what comes later, and ends in order.
func TestCodexLaunchedPersists(t *testing.T) {
	for name, command := range map[string][]string{"exec": inExec, "terminal": inTerminal} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			all := some(3)
			r := bareCodexRig(t, answers(own).script())
			r.add(all[0])
			m := r.launching(ctx, []string{"--mode", "persist"}, command...)
			r.answered(ctx, 1)
			r.add(all[1:]...)
			r.answered(ctx, 3)
			require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
			w, log := m.wait()
			assert.Equal(t, "stopped", w.Reason, "%q", log)
			r.came(answeredOnce(all...)...)
			r.sessionsGone(ctx)
		})
	}
}

// What an error of the API means is known from the rollout: the entry is delivered again once
// the API is back, or the work ends with what a person has to do.
func TestCodexLaunchedErrors(t *testing.T) {
	ctx := minutes(t)
	all := some(3)
	for name, command := range map[string][]string{"exec": inExec, "terminal": inTerminal} {
		var failed bool
		r := bareCodexRig(t, func(q model.Request) model.Reply {
			if lastTag(q) == "[e2]" && !failed {
				failed = true
				return model.Error(http.StatusInternalServerError, "server_error", "it broke")
			}
			return own(lastTag(q), 1)
		})
		r.add(all...)
		w, log := r.launching(ctx, []string{"--start-timeout", unhurried(t, 5*time.Second, clients).String()}, command...).wait()
		assert.Equal(t, []any{"drained", 3, 1, 2}, []any{w.Reason, w.Answered, w.Redelivered, w.Sessions}, "%s: %q", name, log)
	}

	refused := bareCodexRig(t, func(model.Request) model.Reply {
		return model.Error(http.StatusUnauthorized, "invalid_request_error", "no such key")
	})
	refused.add(all...)
	w, log := refused.launching(ctx, []string{"--max-restarts", "1"}, inExec...).wait()
	assert.NotEqual(t, "drained", w.Reason, "%q", log)
	assert.Equal(t, 3, w.Queued)
	assert.Contains(t, strings.Join(log, "\n"), "401", "why is said")
}

// What keeps a session from its inbox is said, and nothing is lost.
func TestCodexLaunchedInVain(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(r *codexRig)
		command []string
		want    string
	}{
		"disabled": {nil, append([]string{"--disable", "hooks"}, inExec...), "does not take the hook of the session: its hooks are disabled"},
		"disabled by a profile": {func(r *codexRig) {
			require.NoError(r.t, os.WriteFile(filepath.Join(r.home, "p.config.toml"), []byte("[features]\nhooks = false\n"), 0o600))
		}, append([]string{"exec", "-p", "p"}, inExec[1:]...), "a profile (-p) may not switch hooks off"},
		"untrusted": {func(r *codexRig) { r.wire() }, inTerminal, "there are hooks that nobody has trusted"},
		"no login": {func(r *codexRig) {
			require.NoError(r.t, os.WriteFile(filepath.Join(r.home, "config.toml"), nil, 0o600))
		}, inTerminal, "Codex is not logged in"},
		"no prompt": {nil, nil, "give the command something to begin with"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			all := some(1)
			r := bareCodexRig(t, answers(own).script())
			r.add(all...)
			if c.prepare != nil {
				c.prepare(r)
			}
			w, log := r.launching(ctx, []string{"--start-timeout", unhurried(t, 15*time.Second, clients).String(), "--max-restarts", "0"}, c.command...).wait()
			assert.Contains(t, w.Detail, c.want, "%q", log)
			assert.Equal(t, []int{0, 1}, []int{w.Answered, w.Queued})
			r.sessionsGone(ctx)
		})
	}
}

// With --mcp the agent says itself what becomes of its entry.
func TestCodexLaunchedTools(t *testing.T) {
	ctx := minutes(t)
	all := some(2)
	r := bareCodexRig(t, func(q model.Request) model.Reply {
		if lastTag(q) == "[e1]" && len(q.ToolResults) == 0 {
			return model.Tool("mcp__heartbeat__task_reject", map[string]any{"reason": "not for me"})
		}
		return own(lastTag(q), 1)
	})
	r.add(all...)
	w, log := r.launching(ctx, []string{"--mcp"}, inExec...).wait()
	assert.Equal(t, []any{"drained", 1, 1}, []any{w.Reason, w.Answered, w.DeadLettered}, "%q", log)
	letters := r.deadLetters()
	require.Len(t, letters, 1)
}

// Tokens and dollars are counted for each entry.
func TestCodexLaunchedTokens(t *testing.T) {
	ctx := minutes(t)
	all := some(4)
	r := bareCodexRig(t, func(q model.Request) model.Reply {
		return own(lastTag(q), 1).Using(model.Usage{Input: 1000, Output: 10, CacheRead: 500})
	})
	r.add(all...)
	w, log := r.launching(ctx, nil, inExec...).wait()
	assert.Equal(t, []any{"drained", 4}, []any{w.Reason, w.Answered}, "%q", log)
	for line := range strings.Lines(strings.TrimSpace(r.run("", "results", "--json"))) {
		assert.Contains(t, line, `"cost_usd":0.0014125,"tokens":{"input":1000,"output":10,"cache_read":500,"cache_write":0},"requests":1`)
	}
}

// A session that asks for an approval where nobody is tells of it and is ended, the policy decides about its entry, and
// the next one is worked on.
func TestCodexLaunchedAsks(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	all := some(2)
	r := bareCodexRig(t, first("[e1]", model.Tool("exec_command", map[string]any{
		"cmd": "touch " + made, "sandbox_permissions": "require_escalated", "justification": "please",
	})).script())
	r.add(all...)
	told := filepath.Join(t.TempDir(), "told")
	flags := []string{"--ask-patience", "15s", "--notify", "cat >> " + told}
	w, log := r.launching(minutes(t), flags, "-a", "on-request", "-s", "read-only", "hello").wait()
	assert.Equal(t, []any{"drained", 1, 1, 2}, []any{w.Reason, w.Answered, w.DeadLettered, w.Sessions}, "%q", log)
	assert.Contains(t, strings.Join(log, "\n"), "it waits for a person, and nobody is there: Codex asks for permission")
	letters := r.deadLetters()
	require.Len(t, letters, 1)
	assert.Equal(t, "asked a person", letters[0].Reason)
	assert.NoFileExists(t, made)
	messages, err := os.ReadFile(told)
	require.NoError(t, err)
	assert.Contains(t, string(messages), `"what":"question"`)
}
