package client

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pluginRig has the plugin, installed from this checkout by the client's own commands, in
// a project with an inbox where the plugin looks for it, and no settings.
func pluginRig(t *testing.T) *rig {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("seeing a hook wait needs /proc")
	}
	r := newRig(t, own)
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	for _, args := range [][]string{
		{"validate", "--strict", root},
		{"validate", "--strict", "--profile", "directory", filepath.Join(root, "plugin")},
		{"marketplace", "add", root},
		{"install", "heartbeat@heartbeat"},
	} {
		cmd := r.command(Options{}, append([]string{"plugin"}, args...)...)
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "claude plugin %v: %s", args, said)
	}
	r.inbox = filepath.Join(r.Project, "work", "inbox.jsonl")
	require.NoError(t, os.Mkdir(filepath.Dir(r.inbox), 0o700))
	return r
}

// withPlugin has the binaries on the PATH, and no settings.
func (r *rig) withPlugin(env ...string) Options {
	return Options{Env: append([]string{"PATH=" + filepath.Dir(r.stop) + ":" + os.Getenv("PATH")}, env...)}
}

// A session at a terminal is woken with each entry: no cap applies.
func TestHeartbeatPluginAtTerminal(t *testing.T) {
	ctx := within(t)
	r := pluginRig(t)
	all := some(20)
	r.add(all...)
	s := r.attended(ctx, r.withPlugin())
	r.answered(ctx, len(all))
	r.settled(answeredOnce(all...)...)
	r.quit(ctx, s)
}

// Under -p a session ends in order before the client would swallow a block, and the next
// one goes on.
func TestHeartbeatPluginPrints(t *testing.T) {
	ctx := within(t)
	r := pluginRig(t)
	all := some(blockCap + 3)
	r.add(all...)
	r.drain(ctx, prompt(1), r.withPlugin())
	r.logged(answeredOnce(all[:blockCap]...)...)
	assert.Nil(t, r.flying())
	r.drain(ctx, prompt(2), r.withPlugin())
	r.settled(answeredOnce(all...)...)
}

// With the cap lifted, one session drains all.
func TestHeartbeatPluginPrintsWithoutCap(t *testing.T) {
	ctx := within(t)
	r := pluginRig(t)
	all := some(blockCap + 3)
	r.add(all...)
	r.drain(ctx, prompt(1), r.withPlugin(NoBlockCap))
	r.settled(answeredOnce(all...)...)
}

// Where the settings wire the hook as well, that one delivers, each entry once.
func TestHeartbeatPluginBesideSettings(t *testing.T) {
	ctx := within(t)
	r := pluginRig(t)
	all := some(blockCap + 3)
	r.installIn(r.projectSettings())
	r.add(all...)
	r.drain(ctx, prompt(1), r.withPlugin())
	r.settled(answeredOnce(all...)...)
}

// Without the binaries the session is as it is without the plugin.
func TestHeartbeatPluginWithoutBinaries(t *testing.T) {
	ctx := within(t)
	r := pluginRig(t)
	all := some(1)
	r.add(all...)
	r.drain(ctx, prompt(1), Options{Env: []string{"PATH=/usr/bin:/bin"}})
	assert.NoFileExists(t, r.path(".results.jsonl"))
	assert.Nil(t, r.flying())
}
