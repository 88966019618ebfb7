package client

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// mute runs the hook as it is, except that its first decision is lost: the hook
// is killed after the commit and before it printed.
const mute = `#!/bin/sh
dir=$(dirname "$0")
if test -e "$dir/muted"; then
	exec "$HOOK" --inbox "$dir/inbox.jsonl" --signal-file "$dir/signal" --on-orphan "$POLICY"
fi
"$HOOK" --inbox "$dir/inbox.jsonl" --on-orphan "$POLICY" >"$dir/lost"
touch "$dir/muted"
kill -9 $$
`

// muted is a rig whose hook loses its first decision.
func muted(t *testing.T, how answers, policy string, all []entry) (*rig, Options) {
	t.Helper()
	r := newRig(t, how).install().add(all...)
	hook := r.path("mute")
	require.NoError(t, os.WriteFile(hook, []byte(mute), 0o700))
	r.edit(func(settings map[string]any) {
		settings["hooks"].(map[string]any)["Stop"] = stopHook(hook)
	})
	return r, r.options("HOOK="+r.stop, "POLICY="+policy)
}

// A hook that was killed before it printed delivered nothing. The entry is
// delivered again at the next prompt, whatever the policy, and the attempt does
// not count.
func TestHeartbeatHookKilled(t *testing.T) {
	for _, policy := range policies {
		all := some(3)
		t.Run(policy+" at a terminal", func(t *testing.T) {
			ctx := within(t)
			late := &caughtUp{ctx: ctx, tag: "[p2]"}
			r, o := muted(t, late.answer, policy, all)
			late.rig = r
			s := r.attended(ctx, o)
			r.until(ctx, "the hook is killed", func() bool { _, err := os.Stat(r.path("muted")); return err == nil })
			require.NotNil(t, r.flying())
			require.NoError(t, s.Submit(ctx, prompt(2)))
			r.until(ctx, "the stop is approved", r.approved)
			r.settled(answeredOnce(all...)...)
			r.quit(ctx, s)
		})
		t.Run(policy+" in a new session", func(t *testing.T) {
			r, o := muted(t, own, policy, all)
			ctx := within(t)
			r.drain(ctx, prompt(1), o)
			require.NotNil(t, r.flying())
			r.drain(ctx, prompt(2), o)
			r.settled(answeredOnce(all...)...)
		})
	}
}

// The same when the next prompt resumes the session.
func TestHeartbeatHookKilledThenResumed(t *testing.T) {
	all := some(3)
	r, o := muted(t, own, "deadletter", all)
	ctx := within(t)
	r.drain(ctx, prompt(1), o)
	require.NotNil(t, r.flying())
	o.Resume = r.flying().SessionID
	r.drain(ctx, prompt(2), o)
	r.settled(answeredOnce(all...)...)
}

// caughtUp is a model that answers a prompt once the client has written it into
// its transcript, which it does a tenth of a second late. No model is that fast,
// save the one of these tests.
type caughtUp struct {
	ctx context.Context
	tag string
	rig *rig // set before the prompt comes
}

func (c *caughtUp) answer(tag string, nth int) model.Reply {
	for tag == c.tag && c.ctx.Err() == nil && !c.written() {
		time.Sleep(poll)
	}
	return own(tag, nth)
}

// written runs beside the test, and so leaves its errors to the test's own wait.
func (c *caughtUp) written() bool {
	paths, _ := filepath.Glob(filepath.Join(c.rig.Home, ".claude", "projects", "*", "*.jsonl"))
	for _, path := range paths {
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(`"role":"user","content":"begin `+c.tag+`"`)) {
			return true
		}
	}
	return false
}

// starved is the hook with too little memory for its runtime, until there is enough.
const starved = `#!/bin/sh
test -e "${0%/*}/enough" || ulimit -v 50000
exec "$HOOK" "$@"
`

// What the runtime says when it dies is nothing for the model, and keeps no prompt from it: the
// session ends as if there were no hook, and the next one does the work.
func TestHeartbeatHookWithoutMemory(t *testing.T) {
	for name, event := range map[string]string{"at each Stop": "Stop", "at each prompt": "UserPromptSubmit"} {
		t.Run(name, func(t *testing.T) {
			all := some(3)
			r := newRig(t, own).install().add(all...)
			hook := r.path("starved")
			require.NoError(t, os.WriteFile(hook, []byte(starved), 0o700))
			r.edit(func(settings map[string]any) {
				group := settings["hooks"].(map[string]any)[event].([]any)[0].(map[string]any)
				group["hooks"].([]any)[0].(map[string]any)["command"] = hook
			})
			o := r.options("HOOK=" + r.stop)
			if event == "Stop" {
				r.drain(within(t), prompt(1), o)
				assert.Equal(t, 1, r.turns())
				assert.Nil(t, r.flying())
				require.NoError(t, os.WriteFile(r.path("enough"), nil, 0o600))
			}
			r.drain(within(t), prompt(2), o)
			r.settled(answeredOnce(all...)...)
		})
	}
}
