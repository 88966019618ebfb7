package client

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// failedAmid starts a session at a terminal on four entries. The API fails at the second
// one. The error is recorded with the entry, and the launcher gets its signal.
func failedAmid(ctx context.Context, t *testing.T, reply model.Reply, flags ...string) (*rig, *Session, []entry) {
	t.Helper()
	all := some(4)
	r := newRig(t, first("[e2]", reply)).install(flags...).add(all...)
	s := r.attended(ctx, r.options(NoRetries))
	r.until(ctx, "the failure is signalled", r.approved)
	require.NotNil(t, r.flying(), "a turn that failed answered nothing")
	require.NotNil(t, r.flying().Failure)
	assert.Len(t, r.results(), 1)
	r.forgetSignal()
	return r, s, all
}

// The launcher ends the session, calls recover and starts another one. The error decides
// in place of the policy: the entry is delivered again, once delivery is no longer held.
func TestHeartbeatFailedThenRecover(t *testing.T) {
	for name, c := range map[string]struct {
		reply   model.Reply
		policy  string
		error   string // as the client calls it
		attempt int    // of the second delivery
	}{
		"500": {model.Error(500, "api_error", "Internal server error"), "deadletter", "server_error", 2},
		"529": {model.Overloaded(), "retry", "server_error", 1},
		"429": {model.Error(429, "rate_limit_error", "slow down"), "deadletter", "rate_limit", 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			r, s, all := failedAmid(ctx, t, c.reply)
			assert.Equal(t, c.error, r.flying().Failure.Error)
			r.quit(ctx, s)
			r.run("", "recover", "--on-orphan", c.policy)
			assert.Nil(t, r.flying())
			r.run("", "resume") // in place of waiting for the end of the back-off
			r.drain(ctx, prompt(2), r.options())
			fates := answeredOnce(all...)
			fates[1].arrivals, fates[1].attempt = 2, c.attempt
			r.settled(fates...)
		})
	}
}

// Without recover the next Stop does the same, in another session or in the same one if
// a person continues it.
func TestHeartbeatFailedThenForgotten(t *testing.T) {
	for _, policy := range []string{"deadletter", "retry"} {
		t.Run(policy+" in a new session", func(t *testing.T) {
			ctx := within(t)
			r, s, all := failedAmid(ctx, t, model.Overloaded(), "--on-orphan", policy)
			r.quit(ctx, s)
			r.drain(ctx, prompt(2), r.options())
			r.settled(fatesAmid(all, 2, policy, "failed")...)
		})
		t.Run(policy+" in the same session", func(t *testing.T) {
			ctx := within(t)
			r, s, all := failedAmid(ctx, t, model.Overloaded(), "--on-orphan", policy)
			require.NoError(t, s.Submit(ctx, prompt(2)))
			r.until(ctx, "the stop is approved", r.approved)
			r.settled(fatesAmid(all, 2, policy, "failed")...)
			r.quit(ctx, s)
		})
	}
}

// In print mode the client ends with the failure, and ends the hook that should report
// it. Whether the failure is recorded is a matter of luck, but nothing is lost or
// acknowledged.
func TestHeartbeatFailedInPrint(t *testing.T) {
	all := some(4)
	r := newRig(t, first("[e2]", model.Overloaded())).install("--on-orphan", "retry").add(all...)
	ctx := within(t)
	result, err := r.Print(prompt(1), r.options(NoRetries)).Wait(ctx)
	require.NoError(t, err)
	assert.Equal(t, 1, result.ExitCode)
	assert.Len(t, r.results(), 1)
	require.NotNil(t, r.flying())
	r.drain(ctx, prompt(2), r.options())
	r.settled(fatesAmid(all, 2, "retry", "")...)
}
