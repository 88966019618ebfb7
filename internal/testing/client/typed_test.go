package client

import (
	"context"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// atTerminal starts a launcher that a person sits at.
func (r *rig) atTerminal(flags ...string) *Session {
	r.t.Helper()
	launch, err := buildLaunch()
	require.NoError(r.t, err)
	o := Options{Env: []string{NoRetries}}
	cmd := r.command(o)
	args := append([]string{launch, "--inbox", r.inbox, "--cwd", r.Project, "--hook", r.stop, "--report", r.path("report.json")}, flags...)
	cmd.Path, cmd.Args = launch, append(args, "--", r.binary, prompt(1))
	tty, err := pty.StartWithSize(cmd, o.size())
	require.NoError(r.t, err)
	s := &Session{tty: tty, screen: newOutput()}
	go s.screen.collect(tty)
	r.t.Cleanup(func() { _ = tty.Close() })
	s.Process = r.watch(cmd)
	return s
}

// What a person types at the terminal while entries are worked on is done before the
// session is ended.
func TestManagedTyped(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		done func(context.Context, *rig)
	}{
		"a prompt": {"also do this [x1]", func(ctx context.Context, r *rig) { r.asked(ctx, "[x1]", 1) }},
		"/compact": {"/compact", func(ctx context.Context, r *rig) {
			_, err := r.WaitEvent(ctx, "PreCompact", 1)
			require.NoError(r.t, err)
		}},
		"/clear": {"/clear", func(ctx context.Context, r *rig) {
			_, err := r.WaitEvent(ctx, "SessionStart", 2)
			require.NoError(r.t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			all := some(2)
			ctx := minutes(t)
			typed := make(chan struct{})
			r := newRig(t, func(tag string, nth int) model.Reply {
				if tag == "[e2]" {
					select {
					case <-typed:
					case <-ctx.Done():
					}
				}
				return own(tag, nth)
			}).add(all...)
			r.Record("SessionStart", "PreCompact")
			s := r.atTerminal()
			r.asked(ctx, "[e2]", 1)
			require.NoError(t, s.Submit(ctx, c.line))
			r.until(ctx, "the client has queued it", func() bool { return r.transcribed(`"operation":"enqueue"`) })
			close(typed)
			c.done(ctx, r)
			status, err := s.Wait(ctx)
			require.NoError(t, err)
			assert.Zero(t, status)
			if name == "a prompt" {
				assert.True(t, r.transcribed(ownReply("[x1]")), "it was answered")
			}
			results := r.results()
			assert.Len(t, results, 2)
			assert.Nil(t, r.flying())
			r.sessionsGone(ctx)
		})
	}
}
