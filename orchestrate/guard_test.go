package orchestrate_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

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
	r := newProcessRig(t, twoTasksJS)
	states := filepath.Join(r.dir, "states")
	r.startRun("--session-id", "s1", "--state-dir", states, "--max-iterations", "0")
	read := gjson.Parse(r.babysit("session:state", "--session-id", "s1", "--state-dir", states, "--json"))
	require.True(t, read.Get("state.maxIterations").Exists(), read.Raw)
	assert.Zero(t, read.Get("state.maxIterations").Int())

	ledger := filepath.Join(filepath.Dir(r.inbox), ".run-r1.json")
	text, err := os.ReadFile(ledger)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(text, []byte(`"steps":1}`)), "%s", text)
	require.NoError(t, os.WriteFile(ledger, bytes.Replace(text, []byte(`"steps":1}`), []byte(`"steps":1001}`), 1), 0o600))
	file, err := orchestrate.StateFileAt(states, "s1")
	require.NoError(t, err)
	s, err := file.Read()
	require.NoError(t, err)
	s.Iteration = 1001
	require.NoError(t, file.Write(s))

	assert.Equal(t, "heartbeat: this session is bound to run r1, iteration 1001", r.spender("s1", "--state-dir", states).shown)
	r.sessionID = "s1"
	r.drive("--state-dir", states, "--max-iterations", "0")
	assert.Equal(t, "completed", r.state())
	assert.Contains(t, r.standing(), "run r1: completed, 1003 iterations; it is done")
}
