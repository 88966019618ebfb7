package session_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/testing/agent"
)

// Where no hook can run, the client's own result line says that a prompt was answered: a
// guild that tries again would pay twice.
func TestWithoutHooks(t *testing.T) {
	const alone = ": that 1 prompt was answered is known from its own result line alone"
	for name, c := range map[string]struct {
		prompt   string
		switched bool // off by a settings file
		kill     string
		status   string
		error    string
		warning  string
	}{
		"by the settings":          {prompt: "hello", switched: true, status: "completed", warning: "CWD/.claude/settings.json has disableAllHooks, so that no hook of the client ran" + alone},
		"for an unknown reason":    {prompt: "hello", status: "completed", warning: "no hook of the client ran" + alone},
		"the host is killed":       {prompt: "hello", switched: true, kill: "ended", status: "completed", warning: "no hook of the client ran" + alone},
		"killed before its result": {prompt: "die", switched: true, status: "failed", error: "claude was ended by SIGKILL; 0 of 1 prompt answered, 1 set aside as dead letters"},
		"the host is killed first": {prompt: "hello", switched: true, kill: "message 2", status: "failed", error: "the session's host was killed; 0 of 1 prompt answered, 1 set aside as dead letters"},
		"a result, but no answer":  {prompt: "result exit:0", switched: true, status: "failed", error: "claude exited with code 0; 0 of 1 prompt answered, 1 set aside as dead letters"},
		"an error of the API":      {prompt: "limit", switched: true, status: "rate-limited", error: "rate_limit"},
		"tasks in the background": {prompt: `print:{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b"}]}`, switched: true, status: "failed",
			error: "claude exited with code 0; 0 of 1 prompt answered, 1 set aside as dead letters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.prompt)
			r.Config.Env = map[string]string{agent.NoHooksVariable: "1"}
			if c.switched {
				require.NoError(t, os.Mkdir(r.path("cwd/.claude"), 0o700))
				require.NoError(t, os.WriteFile(r.path("cwd/.claude/settings.json"), []byte(`{"disableAllHooks":true}`), 0o600))
			}
			cmd := r.command()
			cmd.Env = append(cmd.Env, killVariable+"="+c.kill)
			_ = cmd.Run() // it may be killed
			r.until("the session is reported", func() bool { s, _ := r.guild.Session("ses-1"); return s.Record.Applied == 1 })
			r.alone()
			report := r.report()
			assert.Equal(t, c.status, report["status"])
			if c.error != "" {
				assert.Equal(t, c.error, report["error"])
				assert.NotContains(t, report, "warnings")
				return
			}
			assert.Equal(t, []any{replaced(c.warning, "CWD", r.path("cwd"))}, report["warnings"])
			each := report["entries"].(map[string]any)["each"].([]any)
			assert.Equal(t, "the client's own result line says so: no hook did", each[0].(map[string]any)["why"])
			r.isClean()
		})
	}
}

// Prompts that no hook delivers get a client each, with one conversation.
func TestSentWithoutHooks(t *testing.T) {
	t.Parallel()
	r := newRig(t, "first")
	r.Config.Env = map[string]string{agent.NoHooksVariable: "1"}
	r.Inbox = r.path("inbox.jsonl")
	require.NoError(t, os.WriteFile(r.Inbox, []byte("second\n"), 0o600))
	r.run()
	report := r.report()
	assert.Equal(t, "completed", report["status"])
	assert.Equal(t, 2.0, report["entries"].(map[string]any)["answered"])
	assert.Equal(t, 2, r.state().Rounds)
	box, err := inbox.Open(r.Inbox, inbox.Options{})
	require.NoError(t, err)
	sessions := map[string]bool{}
	results, err := outcomes.OpenTail(box.ResultsPath(), -1)
	require.NoError(t, err)
	require.NoError(t, results.Lines(func(line []byte) { sessions[sessionIn(line)] = true }))
	require.NoError(t, results.Close())
	assert.Len(t, sessions, 1)
}

func replaced(text, old, by string) string { return strings.ReplaceAll(text, old, by) }

func sessionIn(line []byte) string {
	var r inbox.Result
	_ = json.Unmarshal(line, &r) // heartbeat wrote it
	return r.SessionID
}
