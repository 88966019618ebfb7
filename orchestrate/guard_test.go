package orchestrate_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
