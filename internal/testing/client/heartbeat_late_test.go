package client

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lateInput hands the client's input on late, and with a pause in it, as it comes on
// a machine that has no time for the client.
const lateInput = `#!/bin/sh
dir=$(dirname "$0")
cat >"$dir/input.$$"
{ sleep 2; head -c 100 "$dir/input.$$"; sleep 2; tail -c +101 "$dir/input.$$"; } |
	"$HOOK" --inbox "$dir/inbox.jsonl" --signal-file "$dir/signal"
`

// However late its input is, the hook waits for it: every entry is answered, with its
// reply.
func TestHeartbeatLateInput(t *testing.T) {
	all := some(2)
	r := newRig(t, own).install().add(all...)
	hook := r.path("hook")
	require.NoError(t, os.WriteFile(hook, []byte(lateInput), 0o700))
	r.edit(func(settings map[string]any) {
		settings["hooks"].(map[string]any)["Stop"] = stopHook(hook)
	})
	r.drain(minutes(t), prompt(1), r.options("HOOK="+r.stop))
	r.settled(answeredOnce(all...)...)
	assert.Equal(t, 3, r.turns())
	assert.True(t, r.approved())
}

// stuckBeside holds the inbox's lock from the second Stop on, and ends our hook of that
// Stop, as the client does when its time is over.
const stuckBeside = `#!/bin/sh
dir=$(dirname "$0")
echo >>"$dir/stops"
test "$(wc -l <"$dir/stops")" -eq 2 ||
	exec "$HOOK" --inbox "$dir/inbox.jsonl" --signal-file "$dir/signal"
exec flock "$dir/.inbox-lock" timeout 2 "$HOOK" --inbox "$dir/inbox.jsonl" --signal-file "$dir/signal"
`

// A Stop that could not be noted, since its hook never got the lock, is told by the
// transcript: its entry was answered, whatever the policy, and is done once.
func TestHeartbeatLockStuck(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			all := some(3)
			r := newRig(t, own).install().add(all...)
			hook := r.path("hook")
			require.NoError(t, os.WriteFile(hook, []byte(stuckBeside), 0o700))
			r.edit(func(settings map[string]any) {
				settings["hooks"].(map[string]any)["Stop"] = stopHook(hook)
			})
			ctx := minutes(t)
			r.drain(ctx, prompt(1), r.options("HOOK="+r.stop))
			require.NotNil(t, r.flying(), "the session ended without the hook")
			assert.False(t, r.approved())
			if policy == "drop" {
				r.run("", "recover", "--on-orphan", policy)
			}
			r.drain(ctx, prompt(2), r.options("HOOK="+r.stop))
			r.settled(answeredOnce(all...)...)
		})
	}
}
