package orchestrate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"heartbeat/internal/testing/script"
)

// fire runs the hook for one event of a session, whose client is the process client.
func (r *runRig) fire(event, session, reply string, active bool, client int, flags ...string) (out gjson.Result, said string) {
	r.t.Helper()
	in, err := json.Marshal(map[string]any{
		"hook_event_name": event, "session_id": session, "prompt_id": "p-" + session, "stop_hook_active": active, "last_assistant_message": reply,
	})
	require.NoError(r.t, err)
	cmd := exec.Command(r.hook, append([]string{"--inbox", r.inbox, "--run", r.run, "--babysitter", r.babysitter}, flags...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, append(os.Environ(), fmt.Sprintf("CLAUDE_PID=%d", client)), strings.NewReader(string(in))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	require.NoError(r.t, err, stderr.String())
	return gjson.ParseBytes(text), stderr.String()
}

// client starts a process that a session can belong to.
func (r *runRig) client() *exec.Cmd {
	r.t.Helper()
	cmd := exec.Command("sleep", "1000")
	require.NoError(r.t, cmd.Start())
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone
		_ = cmd.Wait()
	})
	return cmd
}

func (r *runRig) resolved() int64 {
	r.t.Helper()
	return gjson.Get(r.babysit("task:list", r.run, "--json"), `tasks.#(status="resolved_ok")#|#`).Int()
}

// Each Stop posts the results, whatever other entry the session gets. The process runs when
// it waits for nothing more, although the inbox is never empty.
func TestStopsPost(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  await ctx.parallel.all([() => ctx.task(agent,{q:'a'}), () => ctx.task(agent,{q:'b'})]); return await ctx.task(agent,{q:'last'}); }`)
	pid := os.Getpid()
	send := func(text string) {
		out, err := r.heartbeat("send", "--inbox", r.inbox, text)
		require.NoError(t, err, out)
	}
	out, _ := r.fire("Stop", "s", "hello", false, pid)
	assert.Contains(t, out.Get("reason").String(), "agent a")
	assert.Equal(t, "heartbeat: run r1, iteration 1/256, 2 effects wait", out.Get("systemMessage").String())
	send("a person's 1")
	send("a person's 2")
	send("a person's 3")

	out, _ = r.fire("Stop", "s", "answer a", true, pid)
	assert.Contains(t, out.Get("reason").String(), "agent b")
	assert.Equal(t, int64(1), r.resolved(), "a")
	out, _ = r.fire("Stop", "s", "answer b", true, pid, "--announce")
	assert.Equal(t, "a person's 1", out.Get("reason").String())
	assert.Contains(t, out.Get("systemMessage").String(), "heartbeat: entry ")
	assert.Equal(t, int64(2), r.resolved(), "b")
	assert.Contains(t, r.standing(), "1 entry queued, 2 iterations", "the last task is in the inbox")
	out, _ = r.fire("Stop", "s", "answer 1", true, pid)
	assert.Equal(t, "a person's 2", out.Get("reason").String())
	assert.False(t, out.Get("systemMessage").Exists())
}

// An effect that got its result while its entry waited is not delivered.
func TestResolvedElsewhere(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  return (await ctx.parallel.all([() => ctx.task(agent,{q:'a'}), () => ctx.task(agent,{q:'b'})])).join(); }`)
	_, effect, _ := strings.Cut(r.step().Queued[0], "/")
	post := exec.Command(r.babysitter, "task:post", r.run, effect, "--status", "ok", "--value", "-", "--json")
	post.Dir, post.Stdin = r.dir, strings.NewReader(`"posted"`)
	text, err := post.CombinedOutput()
	require.NoError(t, err, "%s", text)
	r.drive()
	assert.Equal(t, `"posted,done2"`, r.output())
	assert.Len(t, r.texts, 3, "begin, b, the end: %q", r.texts)
	out, err := r.heartbeat("log", "--inbox", r.inbox)
	require.NoError(t, err, out)
	assert.Contains(t, out, "resolved elsewhere")
}

// An entry that came with a copy of a project names the run of the original. It is passed, and the copy's step asks
// with the paths of the copy. So is an entry of an effect that an older run directory does not know, or of no run.
func TestEntriesOfOtherRuns(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent,{q:'a'}); }`)
	queued := r.step().Queued[0]
	before, err := os.ReadFile(r.inbox)
	require.NoError(t, err)
	copied := *r
	copied.dir = t.TempDir()
	copied.inbox, copied.run = strings.Replace(r.inbox, r.dir, copied.dir, 1), strings.Replace(r.run, r.dir, copied.dir, 1)
	require.NoError(t, os.CopyFS(copied.dir, os.DirFS(r.dir)))
	out, said := copied.fire("Stop", "s", "hello", false, os.Getpid())
	assert.Contains(t, said, "entry "+queued+" is settled without a delivery: another inbox drives the run in "+r.run+": "+r.inbox)
	assert.Contains(t, out.Get("reason").String(), copied.run+"/tasks/")
	assert.NotContains(t, out.Get("reason").String(), r.dir)

	old := strings.ReplaceAll(string(before), strings.TrimPrefix(queued, "r1/"), "01M8P000000000000000000000")
	none := strings.NewReplacer(`r1"`, `removed"`, `"r1/`, `"removed/`).Replace(string(before))
	own := `{"prompt":"mine","run_dir":"/nowhere","effect":"none"}` + "\n"
	require.NoError(t, os.WriteFile(r.inbox, []byte(old+none+own+string(before)), 0o600))
	out, said = r.fire("Stop", "s", "hello", false, os.Getpid())
	assert.Equal(t, "mine", out.Get("reason").String(), "only its names are a run's")
	assert.Contains(t, said, "run r1 has no effect 01M8P000000000000000000000")
	assert.Contains(t, said, "there is no run in "+filepath.Dir(r.run)+"/removed")
	out, _ = r.fire("Stop", "s", "done", true, os.Getpid())
	assert.Contains(t, out.Get("reason").String(), "agent a")
	assert.Contains(t, out.Get("reason").String(), r.run+"/tasks/")
}

// With the default options a crash costs a run nothing: its effect is asked for again, and
// waits for a person after the last attempt. The answer to the requeued entry then reaches
// the run.
func TestCrashesAtTheDefaults(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent,{q:'a'}); }`)
	for n := range 3 {
		out, said := r.fire("Stop", fmt.Sprint("s", n), "hello", false, os.Getpid())
		require.Contains(t, out.Get("reason").String(), "agent a", said)
	}
	out, _ := r.fire("Stop", "s9", "hello", false, os.Getpid())
	assert.False(t, out.Exists())
	assert.Equal(t, "waiting", r.state())
	assert.Contains(t, r.standing(), "waits for a person")
	text, err := r.heartbeat("dead-letter", "requeue", "--inbox", r.inbox, "--all")
	require.NoError(t, err, text)
	r.drive()
	assert.Equal(t, "completed", r.state())
}

// Two live sessions do not take each other's effects. A dead session does not keep its own.
func TestTwoLiveSessions(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent,{q:'a'}); }`)
	one, two := r.client(), r.client()
	r.fire("SessionStart", "s1", "", false, one.Process.Pid)
	out, said := r.fire("Stop", "s1", "hello", false, one.Process.Pid)
	require.Contains(t, out.Get("reason").String(), "agent a", said)
	r.fire("SessionStart", "s2", "", false, two.Process.Pid)
	out, said = r.fire("Stop", "s2", "hello", false, two.Process.Pid)
	assert.False(t, out.Exists())
	assert.Contains(t, said, "which lives: it is left to that one")
	require.NoError(t, one.Process.Kill())
	_ = one.Wait() // it was killed
	out, said = r.fire("Stop", "s2", "hello", false, two.Process.Pid)
	assert.Contains(t, out.Get("reason").String(), "agent a", said)
}

// Events of babysitter's own hook do not count as progress, and do not cause the process to
// run.
func TestNotesAreNoProgress(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.breakpoint({question:'Ship it?'}); }`)
	r.step()
	for n := 3; n < 6; n++ {
		name := fmt.Sprintf("%06d.7ZZZZZZZZZZZZZZZZZZZZZZZZ%d.json", n, n)
		require.NoError(t, os.WriteFile(filepath.Join(r.run, "journal", name), []byte(`{"type":"STOP_HOOK_INVOKED","recordedAt":"2026-01-01T00:00:00Z","data":{"decision":"block"}}`), 0o600))
		r.step()
	}
	assert.Contains(t, r.standing(), ", 1 iteration;")
}

// A process that is killed during a step leaves no process of babysitter behind, and the
// next one takes the step.
func TestKilledStepLeavesNobody(t *testing.T) {
	r := newRunRig(t, `import { existsSync, writeFileSync } from 'node:fs'; import { spawn } from 'node:child_process';
export async function process(inputs, ctx) {
  if (!existsSync('mended')) { spawn('sleep', ['1000'], {stdio:'ignore'}); writeFileSync('began', ''); for (;;); }
  return await ctx.task(agent,{q:'a'}); }`)
	const mark = "HEARTBEAT_TEST_MARK=killed-step"
	cmd := exec.Command("heartbeat", "orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", r.babysitter)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), mark)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(r.dir, "began")); return err == nil }, 5*time.Minute, 10*time.Millisecond)
	require.NotEmpty(t, script.Marked(mark))
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait() // it was killed
	require.Eventually(t, func() bool { return len(script.Marked(mark)) == 0 }, 5*time.Minute, 10*time.Millisecond)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "mended"), nil, 0o600))
	assert.Len(t, r.step().Queued, 1)
}

// A run that failed because an effect was given up can be recovered: requeueing the dead
// letter names the command, and the run then asks for the effect again.
func TestRunReopened(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(odd, {q:'x'}); }`)
	_, effect, _ := strings.Cut(r.step().Queued[0], "/")
	r.mute = func(string) bool { return true }
	r.drive("--on-unresolved", "post-error", "--max-attempts", "1")
	require.Equal(t, "failed", r.state())
	out, err := r.heartbeat("dead-letter", "requeue", "--inbox", r.inbox, "--all")
	require.Error(t, err)
	assert.Contains(t, out, "has its result (resolved_error), so another answer is of no use")
	out, err = r.heartbeat("run", "resume", "r1", "--inbox", r.inbox, "--babysitter", r.babysitter, "--again", "no-such")
	require.Error(t, err)
	assert.Contains(t, out, "it was not posted as failed")
	out, err = r.heartbeat("run", "resume", "r1", "--inbox", r.inbox, "--babysitter", r.babysitter, "--again", effect)
	require.NoError(t, err, out)
	assert.Contains(t, out, "1 entry queued")
	r.mute = nil
	r.drive()
	assert.Equal(t, "completed", r.state())
	assert.Equal(t, `{"ok":true}`, r.output())
}
