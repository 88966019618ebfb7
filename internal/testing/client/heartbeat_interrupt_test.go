package client

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// attended starts a session at a terminal and gives it the first prompt.
func (r *rig) attended(ctx context.Context, o Options) *Session {
	r.t.Helper()
	s := r.Interactive(o)
	require.NoError(r.t, s.WaitReady(ctx))
	require.NoError(r.t, s.Submit(ctx, prompt(1)))
	return s
}

// quit ends a session at a terminal as a launcher would.
func (r *rig) quit(ctx context.Context, s *Session) {
	r.t.Helper()
	require.NoError(r.t, s.Signal(syscall.SIGTERM))
	code, err := s.Wait(ctx)
	require.NoError(r.t, err)
	assert.Equal(r.t, 128+int(syscall.SIGTERM), code)
}

// A person interrupts the turn of an entry and types something else. The answer to that
// acknowledges nothing.
func TestHeartbeatInterrupted(t *testing.T) {
	for _, policy := range []string{"deadletter", "retry"} {
		for name, when := range map[string]bool{"at once": atOnce, "later": written} {
			t.Run(policy+" "+name, func(t *testing.T) {
				all := some(4)
				r := newRig(t, first("[e2]", model.Hang())).install("--on-orphan", policy).add(all...)
				ctx := within(t)
				s := r.attended(ctx, r.options())
				r.asked(ctx, "[e2]", 1)
				if when == written {
					r.until(ctx, "the transcript has the entry", func() bool { return r.transcribed("[e2]") })
				}
				from := len(s.Screen())
				require.NoError(t, s.Esc())
				_, err := s.WaitScreen(ctx, from, "Interrupted")
				require.NoError(t, err)
				assert.Len(t, r.results(), 1)
				require.NotNil(t, r.flying(), "an interrupted turn has no Stop")
				if when == written { // else the client may take the turn back, and note nothing
					r.until(ctx, "status says so", func() bool { return strings.Contains(r.status().Why, "a person interrupted its turn") })
				}

				require.NoError(t, s.Submit(ctx, prompt(2)))
				r.until(ctx, "the stop is approved", r.approved)
				r.settled(fatesAmid(all, 2, policy, "interrupted")...)
				r.quit(ctx, s)
			})
		}
	}
}
