package client

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// The client writes its transcript a tenth of a second late. A session that is
// killed at once leaves none, or one without its last lines.
const (
	atOnce  = false
	written = true // the transcript has caught up
)

// killedAmid starts a session on five entries and kills it while the model
// answers the third.
func killedAmid(t *testing.T, when bool, flags ...string) (*rig, []entry) {
	t.Helper()
	all := some(5)
	r := newRig(t, first("[e3]", model.Hang())).install(flags...).add(all...)
	ctx := within(t)
	run := r.Print(prompt(1), r.options())
	r.asked(ctx, "[e3]", 1)
	if when == written {
		r.until(ctx, "the transcript has the entry", func() bool { return r.transcribed("[e3]") })
	}
	run.Kill()
	code, err := run.ExitCode()
	require.NoError(t, err)
	require.Equal(t, 128+int(syscall.SIGKILL), code)
	require.NotNil(t, r.flying())
	require.Equal(t, "[e3]", r.tagOf(r.flying().EntryID))
	return r, all
}

// fatesAmid are the fates under a policy when the nth entry was not answered at
// its first delivery.
func fatesAmid(all []entry, nth int, policy, reason string) []fate {
	fates := answeredOnce(all...)
	f := &fates[nth-1]
	switch policy {
	case "retry":
		f.arrivals, f.attempt = 2, 2
	case "deadletter":
		f.reply, f.reason = "", reason
	case "drop":
		f.reply = ""
	}
	return fates
}

var policies = []string{"deadletter", "retry", "drop"}

// A launcher calls recover after a session was killed, and starts the next one.
func TestHeartbeatKilledThenRecover(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			r, all := killedAmid(t, atOnce)
			r.run("", "recover", "--on-orphan", policy)
			assert.Nil(t, r.flying())
			assert.Len(t, r.results(), 2, "recover answers nothing")
			r.drain(within(t), prompt(2), r.options())
			r.settled(fatesAmid(all, 3, policy, "orphaned")...)
		})
	}
}

// A launcher that does not call recover loses nothing: the next session's first Stop
// does the same.
func TestHeartbeatKilledThenForgotten(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			r, all := killedAmid(t, atOnce, "--on-orphan", policy)
			r.drain(within(t), prompt(2), r.options())
			r.settled(fatesAmid(all, 3, policy, "orphaned")...)
		})
	}
}

// A resumed session has the id of the killed one. The prompt that resumes it is not the
// entry in flight, so its answer acknowledges nothing.
func TestHeartbeatKilledThenResumed(t *testing.T) {
	for _, policy := range policies {
		for name, resume := range resumes {
			t.Run(policy+" "+name, func(t *testing.T) {
				r, all := killedAmid(t, written, "--on-orphan", policy)
				session := r.flying().SessionID
				r.forgetSignal()
				resume(minutes(t), t, r, session)
				r.settled(fatesAmid(all, 3, policy, "orphaned")...)
				for _, l := range r.results() {
					assert.Equal(t, session, l.SessionID)
				}
			})
		}
	}
}

var resumes = map[string]func(context.Context, *testing.T, *rig, string){
	"in print mode": func(ctx context.Context, t *testing.T, r *rig, session string) {
		o := r.options()
		o.Resume = session
		r.drain(ctx, prompt(2), o)
	},
	"interactively": func(ctx context.Context, t *testing.T, r *rig, session string) {
		o := r.options()
		o.Resume = session
		s := r.Interactive(o)
		require.NoError(t, s.WaitReady(ctx))
		require.NoError(t, s.Submit(ctx, prompt(2)))
		r.until(ctx, "the stop is approved", r.approved)
		r.quit(ctx, s)
	},
}

// A prompt that kills its session each time is finally given up.
func TestHeartbeatKilledAgainAndAgain(t *testing.T) {
	hang := func(tag string, nth int) model.Reply {
		if tag == "[e1]" {
			return model.Hang()
		}
		return own(tag, nth)
	}
	all := some(2)
	r := newRig(t, hang).install("--on-orphan", "retry", "--max-attempts", "2").add(all...)
	ctx := within(t)
	for n := range 2 {
		run := r.Print(prompt(n+1), r.options())
		r.asked(ctx, "[e1]", n+1)
		run.Kill()
	}
	r.drain(ctx, prompt(3), r.options())
	fates := answeredOnce(all...)
	fates[0] = fate{entry: all[0], arrivals: 2, attempt: 2, reason: "attempts exhausted"}
	r.settled(fates...)
}
