package client

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// blockOnce is a settings object whose Stop hook blocks a person's stop with
// some text, and approves the stop that follows.
func blockOnce(reason string) map[string]any {
	script := fmt.Sprintf(`if grep -q '"stop_hook_active":false'; then printf '{"decision":"block","reason":"%s"}'; fi`, reason)
	return map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{
		map[string]any{"type": "command", "command": script},
	}}}}}
}

func TestRealPrintAndResume(t *testing.T) {
	w := workspace(t, Find(t), nil)
	w.Record("SessionStart", "Stop")
	o := Options{Settings: w.WriteSettings("hooks", blockOnce("the next task"))}
	ctx := within(t)

	result, err := w.Print("hello", o).Wait(ctx)
	require.NoError(t, err)
	require.Zero(t, result.ExitCode, result.Stderr)
	assert.Contains(t, result.Stdout, "the next task")
	mains := w.Model.MainRequests()
	require.Len(t, mains, 2)
	assert.Equal(t, "hello", mains[0].UserText)
	assert.Contains(t, mains[1].UserText, "the next task")

	stop, err := w.WaitEvent(ctx, "Stop", 2)
	require.NoError(t, err)
	_, err = w.Print("again", Options{Resume: stop.Text("session_id")}).Wait(ctx)
	require.NoError(t, err)
	start, err := w.WaitEvent(ctx, "SessionStart", 2)
	require.NoError(t, err)
	assert.Equal(t, "resume", start.Text("source"))
	assert.Equal(t, stop.Text("session_id"), start.Text("session_id"))
}

func TestRealInteractive(t *testing.T) {
	w := workspace(t, Find(t), func(r model.Request) model.Reply {
		if strings.HasSuffix(r.UserText, "the next task") {
			return model.Hang()
		}
		return model.Echo(r)
	})
	w.Record("Stop", "SessionEnd")
	ctx := within(t)
	s := w.Interactive(Options{
		Settings: w.WriteSettings("hooks", blockOnce("the next task")),
		Env:      []string{"CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS=600000"}, // by default 1.5 seconds
	})
	require.NoError(t, s.WaitReady(ctx))

	require.NoError(t, s.Submit(ctx, "hello"))
	_, err := w.Model.WaitRequests(ctx, 2)
	require.NoError(t, err)
	from := len(s.Screen())
	require.NoError(t, s.Esc())
	from, err = s.WaitScreen(ctx, from, "Interrupted")
	require.NoError(t, err)
	require.Len(t, w.Events("Stop"), 1, "an interrupted turn has no Stop")

	require.NoError(t, s.Submit(ctx, "again"))
	stop, err := w.WaitEvent(ctx, "Stop", 2)
	require.NoError(t, err)
	assert.Contains(t, stop.Text("last_assistant_message"), "again")
	_, err = s.WaitScreen(ctx, from, "answer to:")
	require.NoError(t, err)

	require.NoError(t, s.Signal(syscall.SIGTERM))
	code, err := s.Wait(ctx)
	require.NoError(t, err)
	assert.Equal(t, 128+int(syscall.SIGTERM), code)
	assert.Len(t, w.Events("SessionEnd"), 1)
}

func TestRealStopFailure(t *testing.T) {
	w := workspace(t, Find(t), func(model.Request) model.Reply { return model.Overloaded() })
	w.Record("StopFailure", "Stop")
	ctx := within(t)
	// In print mode the client may end before its hook has recorded anything.
	s := w.Interactive(Options{Env: []string{NoRetries}})
	require.NoError(t, s.WaitReady(ctx))
	require.NoError(t, s.Submit(ctx, "hello"))
	failure, err := w.WaitEvent(ctx, "StopFailure", 1)
	require.NoError(t, err)
	assert.Equal(t, "server_error", failure.Text("error"))
	assert.Len(t, w.Model.MainRequests(), 1)
	assert.Empty(t, w.Events("Stop"))
}

func TestRealToolUse(t *testing.T) {
	w := workspace(t, Find(t), func(r model.Request) model.Reply {
		if r.Number == 1 {
			return model.Tool("Bash", map[string]any{"command": "echo from-the-tool", "description": "say it"})
		}
		return model.Text("done: " + strings.Join(r.ToolResults, "|"))
	})
	result, err := w.Print("hello", Options{Args: []string{"--allowedTools=Bash"}}).Wait(within(t))
	require.NoError(t, err)
	assert.Equal(t, "done: from-the-tool\n", result.Stdout)
	assert.Len(t, w.Model.MainRequests(), 2)
}
