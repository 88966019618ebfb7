package client

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// blockCap is how many blocks in a row the client takes by default.
const blockCap = 8

// capped installs the hook without the variable that lifts the cap, as after wiring it by
// hand.
func capped(t *testing.T, how answers, flags ...string) *rig {
	t.Helper()
	r := newRig(t, how).install(flags...)
	r.edit(func(settings map[string]any) {
		require.Contains(t, settings, "env")
		delete(settings, "env")
	})
	return r
}

// swallowed drains in print mode until the client ignores a block.
func swallowed(t *testing.T, how answers, flags ...string) (*rig, []entry) {
	t.Helper()
	all := some(blockCap + 3)
	r := capped(t, how, flags...).add(all...)
	r.drain(within(t), prompt(1), r.options())
	r.logged(append(answeredOnce(all[:blockCap]...), fate{entry: all[blockCap]})...)
	require.NotNil(t, r.flying())
	require.Equal(t, all[blockCap].tag, r.tagOf(r.flying().EntryID))
	return r, all
}

// The client ignores the ninth block. Nothing acknowledges that entry, and the next
// session's first Stop delivers it again. It never arrived, so no policy sets it aside
// and the attempt does not count.
func TestHeartbeatBlockCap(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			r, all := swallowed(t, own, "--on-orphan", policy)
			r.drain(within(t), prompt(2), r.options())
			r.settled(answeredOnce(all...)...)
		})
	}
}

// The same with recover in between.
func TestHeartbeatBlockCapThenRecover(t *testing.T) {
	r, all := swallowed(t, own)
	r.run("", "recover", "--on-orphan", "deadletter")
	assert.Nil(t, r.flying())
	r.drain(within(t), prompt(2), r.options())
	r.settled(answeredOnce(all...)...)
}

// If the same session continues, the client sends the ignored text with the next prompt.
// So it did arrive, together with something else, and the policy decides.
func TestHeartbeatBlockCapThenGoOn(t *testing.T) {
	for policy, arrivals := range map[string]int{"deadletter": 1, "retry": 2} {
		t.Run(policy+" resumed", func(t *testing.T) {
			ctx := within(t)
			late := &caughtUp{ctx: ctx, tag: "[p2]"}
			r, all := swallowed(t, late.answer, "--on-orphan", policy)
			late.rig = r
			o := r.options()
			o.Resume = r.flying().SessionID
			r.drain(ctx, prompt(2), o)
			fates := fatesAmid(all, blockCap+1, policy, "orphaned")
			fates[blockCap].arrivals = arrivals
			r.settled(fates...)
		})
		t.Run(policy+" at a terminal", func(t *testing.T) {
			all := some(blockCap + 3)
			ctx := within(t)
			late := &caughtUp{ctx: ctx, tag: "[p2]"}
			r := capped(t, late.answer, "--on-orphan", policy).add(all...)
			late.rig = r
			s := r.attended(ctx, r.options())
			_, err := s.WaitScreen(ctx, 0, "overriding and ending turn")
			require.NoError(t, err)
			require.NoError(t, s.Submit(ctx, prompt(2)))
			r.until(ctx, "the stop is approved", r.approved)
			fates := fatesAmid(all, blockCap+1, policy, "interrupted")
			fates[blockCap].arrivals = arrivals
			r.settled(fates...)
			r.quit(ctx, s)
		})
	}
}
