package orchestrate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A version of the CLI that is known to fail is named before the run fails, but not at each
// step.
func TestAnotherVersionIsSaidOnce(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return [await ctx.task(agent, {q:'a'}), await ctx.task(agent, {q:'b'})].length; }`)
	old := filepath.Join(t.TempDir(), "old babysitter")
	script := "#!/bin/sh\nif [ \"$1\" = version ]; then echo 0.0.174; exit; fi\nexec '" + r.babysitter + "' \"$@\"\n"
	step := func() string {
		out, err := r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", "'"+old+"'")
		require.NoError(t, err, out)
		return out
	}
	require.NoError(t, os.WriteFile(old, []byte(script), 0o700))
	assert.Contains(t, step(), "is version 0.0.174, and heartbeat was measured with 0.0.187: with it tasks were delivered three times")
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(r.inbox), ".run-r1.json")))
	assert.NotContains(t, step(), "0.0.174")
}
