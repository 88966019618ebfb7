package orchestrate_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deliverNext is a Stop at which an entry waits.
func (r *runRig) deliverNext() string {
	r.t.Helper()
	cmd := exec.Command(r.hook, "--inbox", r.inbox)
	cmd.Stdin = strings.NewReader(`{"hook_event_name":"Stop","session_id":"s1","prompt_id":"p1","stop_hook_active":false,"last_assistant_message":"x"}`)
	out, err := cmd.Output()
	require.NoError(r.t, err)
	return string(out)
}

// An entry has the time limit of its task: if it is in flight for longer, the run gets an
// error, and a later result is refused.
func TestTimeLimitOfATask(t *testing.T) {
	for name, task := range map[string]string{
		"agent":             `ctx.task(slow, {q:'a'})`,
		"orchestrator task": `ctx.orchestratorTask({prompt:'a', constraints:{timeout:1}})`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunRig(t, `const slow = defineTask('slow', (a) => ({kind:'agent', title:'slow', agent:{name:'helper', prompt:{task:a.q}, timeoutMs:1}}));
export async function process(inputs, ctx) {
  try { return await `+task+`; } catch (e) { if (/Pending|Requested/.test(e.name)) throw e; return [e.name, e.message]; } }`)
			once := []string{"orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", r.babysitter}
			out, err := r.heartbeat(once...)
			require.NoError(t, err, out)
			assert.Contains(t, r.deliverNext(), "It is to be done within 1ms.")
			out, err = r.heartbeat(once...)
			require.NoError(t, err, out)
			assert.Equal(t, "completed", r.state())
			assert.Equal(t, `["TimeoutError","itwastobedonewithin1ms,andwasnot"]`, r.output())
		})
	}
}

// A result that was handed over in time counts, also while the check of its entry has yet to pass.
func TestTimeLimitDuringACheck(t *testing.T) {
	r := newRunRig(t, `const slow = defineTask('slow', (a) => ({kind:'agent', title:'slow', agent:{name:'helper', prompt:{task:'a'}, timeoutMs:1}}));
export async function process(inputs, ctx) { return await ctx.task(slow, {}); }`)
	s := r.spender("s1", "--check", `test "$HEARTBEAT_REPLY" != claim`)
	require.Contains(t, s.stop("hello"), "It is to be done within 1ms.")
	t.Setenv("CLAUDE_CODE_SESSION_ID", "s1")
	out, err := r.heartbeat("result", r.effect(), "--inbox", r.inbox, "--text", "right")
	require.NoError(t, err, out)
	require.Contains(t, s.stop("claim"), "its check failed")
	out, err = r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	require.NotEmpty(t, s.stop("done"))
	assert.Equal(t, "right", r.result().Get("value").String())
}

// Where nobody takes a step meanwhile, the end of the turn finds that the time is over.
func TestTimeLimitAtTheEndOfTheTurn(t *testing.T) {
	r := newRunRig(t, `const slow = defineTask('slow', (a) => ({kind:'agent', title:'slow', agent:{name:'helper', prompt:{task:'a'}, outputSchema:{type:'object'}, timeoutMs:1}}));
export async function process(inputs, ctx) {
  try { return await ctx.task(slow, {}); } catch (e) { if (/Pending|Requested/.test(e.name)) throw e; return [e.name, e.message]; } }`)
	client := r.client().Process.Pid
	_, said := r.fire("SessionStart", "s1", "", false, client)
	require.Empty(t, said)
	out, said := r.fire("Stop", "s1", "ready", false, client)
	require.Contains(t, out.Get("reason").Str, "It is to be done within 1ms.", said)
	out, said = r.fire("Stop", "s1", "I have no result", true, client)
	assert.Contains(t, out.Get("reason").Str, "<promise>", said)
	assert.Equal(t, `["TimeoutError","itwastobedonewithin1ms,andwasnot"]`, r.output())
}

// The person and the agent are told that a result is not checked.
func TestUnusableSchemaIsSaid(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent, {q:'a', schema:{type:7}}); }`)
	out, err := r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	assert.Contains(t, out, "cannot be used, so its result is not checked: not a usable schema")
	queued, err := os.ReadFile(r.inbox)
	require.NoError(t, err)
	assert.Contains(t, string(queued), "That schema is not valid (not a usable schema")
	r.drive()
	assert.Equal(t, "completed", r.state())
}
