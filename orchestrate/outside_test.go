package orchestrate_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A command survives the end of its hook, which the client ends after ten minutes. The next
// Stop finds it again, and it runs only once.
func TestCommandOutlivesTheHook(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			r := newRunRig(t, `export async function process(inputs, ctx) {
  return await ctx.task(shell, {q:'echo x >> begun; while [ ! -e go ]; do sleep 0.05; done; echo done'}); }`)
			begun := filepath.Join(r.dir, "begun")
			cmd := exec.Command(r.hook, "--inbox", r.inbox, "--run", r.run, "--babysitter", r.babysitter, "--execute", "shell")
			cmd.Dir = r.dir
			cmd.Stdin = strings.NewReader(`{"hook_event_name":"Stop","session_id":"s1","prompt_id":"p1","stop_hook_active":false,"last_assistant_message":"x"}`)
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool { _, err := os.Stat(begun); return err == nil }, 5*time.Minute, 10*time.Millisecond)
			require.NoError(t, cmd.Process.Signal(signal))
			_ = cmd.Wait() // it was ended

			require.NoError(t, os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600))
			r.drive("--execute", "shell")
			assert.Equal(t, "completed", r.state())
			assert.Equal(t, `"done\n"`, r.output())
			lines, err := os.ReadFile(begun)
			require.NoError(t, err)
			assert.Equal(t, "x\n", string(lines))
		})
	}
}

// A hook says why commands cannot be carried out, and approves the stop.
func TestCommandsFailOutside(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(shell, {q:'true'}); }`)
	// It runs the process, and then is broken.
	once := filepath.Join(t.TempDir(), "babysitter")
	script := "#!/bin/sh\nif [ \"$1\" = run:iterate ] && [ ! -e '" + once + ".gone' ]; then touch '" + once + ".gone'; exec '" + r.babysitter + "' \"$@\"; fi\n" +
		"if [ \"$1\" = version ]; then echo 0.0.187; exit; fi\necho made up >&2; exit 1\n"
	require.NoError(t, os.WriteFile(once, []byte(script), 0o700))
	r.drive("--execute", "shell", "--babysitter", once)
	assert.Contains(t, r.said, "carry out its commands: heartbeat: ")
	assert.Contains(t, r.said, "made up")
	assert.Equal(t, 1, strings.Count(r.said, "carry out its commands"))
}

// Results for which one Stop has no time are posted without another Stop.
func TestOthersPostTheRest(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  return (await ctx.parallel.map([1,2,3,4,5,6,7,8,9,10], i => ctx.task(odd, {q:i}))).length; }`)
	out, err := r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	queued, err := os.ReadFile(r.inbox)
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(queued)), "\n") {
		var entry struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(line), &entry))
		out, err := r.heartbeat("result", "--inbox", r.inbox, entry.ID, "--text", "ok")
		require.NoError(t, err, out)
	}
	out, err = r.heartbeat("send", "--inbox", r.inbox, "a person's")
	require.NoError(t, err, out)
	cmd := exec.Command(r.hook, "--inbox", r.inbox, "--run", r.run, "--babysitter", r.babysitter)
	cmd.Dir = r.dir
	cmd.Stdin = strings.NewReader(`{"hook_event_name":"Stop","session_id":"s1","prompt_id":"p1","stop_hook_active":false,"last_assistant_message":"x"}`)
	decision, err := cmd.Output()
	require.NoError(t, err)
	assert.Contains(t, string(decision), "a person's")
	for giveUp := time.Now().Add(20 * time.Minute); r.state() != "completed"; time.Sleep(100 * time.Millisecond) {
		require.True(t, time.Now().Before(giveUp), "nobody posts the rest")
	}
}
