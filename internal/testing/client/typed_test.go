package client

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/testing/model"
)

// atTerminal starts a launcher that a person sits at.
func (r *rig) atTerminal(flags ...string) *Session {
	r.t.Helper()
	launch, err := buildLaunch()
	require.NoError(r.t, err)
	o := Options{Env: []string{NoRetries}}
	cmd := r.command(o)
	cmd.Path, cmd.Args = launch, slices.Concat([]string{launch}, r.workOn(), flags, []string{"--", r.binary, prompt(1)})
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

// A line that is begun keeps the session, though every entry is answered.
func TestManagedTypedLine(t *testing.T) {
	ctx := minutes(t)
	typed := make(chan struct{})
	all := some(1)
	r := newRig(t, func(tag string, nth int) model.Reply {
		if tag == "[e1]" {
			select {
			case <-typed:
			case <-ctx.Done():
			}
		}
		return own(tag, nth)
	}).add(all...)
	s := r.atTerminal()
	r.asked(ctx, "[e1]", 1)
	require.NoError(t, s.Type("please do"))
	_, err := s.WaitScreen(ctx, 0, "please do")
	require.NoError(t, err)
	close(typed)
	signal := filepath.Join(filepath.Dir(r.inbox), ".exit-signal")
	r.until(ctx, "everything is answered, and the launcher knows", func() bool {
		_, err := os.Lstat(signal)
		return len(r.results()) == 1 && err != nil
	})
	require.NoError(t, s.Submit(ctx, " this [x1]"))
	r.asked(ctx, "[x1]", 1)
	status, err := s.Wait(ctx)
	require.NoError(t, err)
	assert.Zero(t, status)
	assert.True(t, r.transcribed(ownReply("[x1]")), "it was answered")
	atRest(t, s)
}

// A client that is killed leaves the terminal as it was.
func TestManagedKilledAtTerminal(t *testing.T) {
	ctx := minutes(t)
	r := newRig(t, first("[e1]", model.Hang())).add(some(1)...)
	s := r.atTerminal("--max-restarts", "0")
	r.asked(ctx, "[e1]", 1)
	require.NoError(t, s.WaitReady(ctx))
	var set terminal.Follower
	set.Follow(s.Screen())
	assert.NotEmpty(t, set.Undo(), "the client sets nothing")
	t.Logf("to undo: %q", set.Undo())
	r.killClient()
	status, err := s.Wait(ctx)
	require.NoError(t, err)
	t.Log(status)
	atRest(t, s)
}

// atRest checks that the launcher has left the terminal so.
func atRest(t *testing.T, s *Session) {
	t.Helper()
	var left terminal.Follower
	left.Follow(s.Screen())
	assert.Empty(t, left.Undo())
	shown := s.Screen()
	t.Logf("%q", shown[max(0, len(shown)-600):])
}
