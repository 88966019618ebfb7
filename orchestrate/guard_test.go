package orchestrate_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"heartbeat/internal/testing/long"
	"heartbeat/orchestrate"
)

// A run that has used up its steps says what lets it continue.
func TestRunOutOfSteps(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  await ctx.task(agent, {q:'a', schema:{type:'object'}}); return await ctx.task(agent, {q:'b'}); }`)
	step := func(flags ...string) (string, error) {
		return r.heartbeat(append([]string{"orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--json", "--babysitter", r.babysitter}, flags...)...)
	}
	out, err := step("--max-iterations", "1")
	require.NoError(t, err, out)
	var report struct{ Queued []string }
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Len(t, report.Queued, 1)

	out, err = r.heartbeat("result", "--inbox", r.inbox, report.Queued[0], "--error", "it cannot be done")
	require.NoError(t, err, out)
	out, err = step("--max-iterations", "1")
	require.Error(t, err)
	assert.Contains(t, out, "the process was run 1 times already: a greater --max-iterations lets it continue")
	out, err = r.heartbeat("run", "status", "--inbox", r.inbox)
	require.NoError(t, err, out)
	assert.Contains(t, out, "goes no further: the process was run 1 times already: a greater --max-iterations")

	out, err = step("--max-iterations", "2")
	require.NoError(t, err, out)
	out, err = r.heartbeat("run", "status", "--inbox", r.inbox)
	require.NoError(t, err, out)
	assert.NotContains(t, out, "goes no further")
}

// --max-iterations 0 is no limit: a run goes beyond the 256 iterations of the default, and a
// session that is bound to it has no limit either, as babysitter reads its file.
func TestRunWithoutALimit(t *testing.T) {
	tasks := long.Rounds(2, 260)
	r := newProcessRig(t, fmt.Sprintf(`export async function process(inputs, ctx) {
  for (let i = 0; i < %d; i++) await ctx.task(shell, {q:'true'});
  return await ctx.task(agent, {q:'last'}); }`, tasks))
	states := filepath.Join(r.dir, "states")
	out, err := r.heartbeat("run", "start", "--inbox", r.inbox, "--babysitter", r.babysitter, "--entry", "p.mjs", "--process-id", "p",
		"--run-id", "r1", "--session-id", "s1", "--state-dir", states, "--execute", "shell", "--max-iterations", "0")
	require.NoError(t, err, out)
	assert.Equal(t, fmt.Sprintf("run r1: waiting for 1 agent, 1 entry queued, %d iterations\n", tasks+1), r.standing())
	read := gjson.Parse(r.babysit("session:state", "--session-id", "s1", "--state-dir", states, "--json"))
	require.True(t, read.Get("state.maxIterations").Exists(), read.Raw)
	assert.Zero(t, read.Get("state.maxIterations").Int())

	file, err := orchestrate.StateFileAt(states, "s1")
	require.NoError(t, err)
	s, err := file.Read()
	require.NoError(t, err)
	s.Iteration = 1000
	require.NoError(t, file.Write(s))
	assert.Contains(t, r.spender("s1", "--state-dir", states).shown, "this session is bound to run r1, iteration 1000")
	r.sessionID = "s1"
	r.drive("--state-dir", states, "--max-iterations", "0")
	assert.Equal(t, "completed", r.state())
}
