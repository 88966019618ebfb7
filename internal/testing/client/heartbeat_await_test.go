package client

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// started is a command that runs in parallel with the test.
type started struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// start starts a command in the client's environment, so that the workspace's cleanup
// finds what it leaves.
func (r *rig) start(ctx context.Context, env []string, stdin, name string, args ...string) *started {
	r.t.Helper()
	s := &started{cmd: exec.CommandContext(ctx, name, args...)}
	s.cmd.Env, s.cmd.Stdin = r.environ(env), strings.NewReader(stdin)
	s.cmd.Stdout, s.cmd.Stderr = &s.stdout, &s.stderr
	s.cmd.WaitDelay = 5 * time.Second
	require.NoError(r.t, s.cmd.Start())
	return s
}

// wait returns what a command said, and its status.
func (s *started) wait() (stdout, stderr string, status int) {
	_ = s.cmd.Wait() // the state says how it ended
	return s.stdout.String(), s.stderr.String(), s.cmd.ProcessState.ExitCode()
}

// sendAndWait starts a producer that waits for the answer.
func (r *rig) sendAndWait(ctx context.Context, e entry, args ...string) *started {
	r.t.Helper()
	return r.start(ctx, nil, e.text, r.heartbeat(), append([]string{"send", "--inbox", r.inbox, "--wait"}, args...)...)
}

// held are answers; the one about a tag comes only when it is released.
func held(ctx context.Context, tag string) (how answers, letGo func()) {
	gate := make(chan struct{})
	return func(asked string, nth int) model.Reply {
		if asked == tag {
			select {
			case <-gate:
			case <-ctx.Done():
			}
		}
		return own(asked, nth)
	}, sync.OnceFunc(func() { close(gate) })
}

// persistingWith is persisting, with answers of its own.
func persistingWith(ctx context.Context, t *testing.T, how answers) (*rig, *Session) {
	t.Helper()
	r := newRig(t, how).install("--mode", "persist", "--idle-interval", "1h")
	s := r.attended(ctx, r.options())
	r.waiting(ctx, 1)
	return r, s
}

// Many producers wait at once, and each gets the answer to its own prompt.
func TestHeartbeatManyWait(t *testing.T) {
	const n = 10
	ctx := within(t)
	r, s := persistingWith(ctx, t, own)
	all := some(n, verbatim)
	var waiters []*started
	for _, e := range all {
		waiters = append(waiters, r.sendAndWait(ctx, e))
	}
	for i, w := range waiters {
		stdout, stderr, status := w.wait()
		assert.Zero(t, status, stderr)
		assert.Equal(t, ownReply(all[i].tag)+"\n", stdout)
		assert.Equal(t, 1, r.arrivals(all[i].text))
	}
	assert.Len(t, r.results(), n)
	assert.Empty(t, r.deadLetters())
	assert.Equal(t, n+1, r.turns())
	r.quit(ctx, s)
}

// A scheduled entry arrives when it is due, at the session that waits then.
func TestHeartbeatNotBefore(t *testing.T) {
	ctx := within(t)
	r, s := persistingWith(ctx, t, own)
	all := some(2, verbatim)
	due := unhurried(t, 5*time.Second, commands)
	sent := time.Now()
	later := r.sendAndWait(ctx, all[0], "--not-before", due.String())
	r.until(ctx, "it is scheduled", func() bool { return r.status().Scheduled == 1 })
	view := r.status()
	assert.Equal(t, "scheduled", view.State)
	assert.Contains(t, view.Why, "nothing is queued: a scheduled entry comes at ")
	now := r.sendAndWait(ctx, all[1])
	for i, w := range []*started{now, later} {
		stdout, stderr, status := w.wait()
		assert.Zero(t, status, stderr)
		assert.Equal(t, ownReply(all[1-i].tag)+"\n", stdout)
	}
	results := r.results()
	require.Len(t, results, 2)
	assert.Equal(t, ownReply(all[1].tag), results[0].Reply, "what is due goes first")
	assert.False(t, results[1].DeliveredAt.Before(sent.Add(due)), "delivered at %s", results[1].DeliveredAt)
	assert.Equal(t, results[0].SessionID, results[1].SessionID)
	assert.Equal(t, 3, r.turns())
	r.quit(ctx, s)
}

// An entry that expires while a slow one is answered never reaches the model, and its
// sender learns why.
func TestHeartbeatExpires(t *testing.T) {
	ctx := within(t)
	how, letGo := held(ctx, "[e1]")
	r, s := persistingWith(ctx, t, how)
	all := some(3, verbatim)
	slow := r.sendAndWait(ctx, all[0])
	r.asked(ctx, "[e1]", 1)
	late := r.sendAndWait(ctx, all[1], "--expires", "300ms")
	r.until(ctx, "it is queued", func() bool { return r.status().Queued == 1 })
	expired := time.Now().Add(300 * time.Millisecond)
	next := r.sendAndWait(ctx, all[2])
	r.until(ctx, "it has expired", func() bool { return time.Now().After(expired) })
	letGo()

	_, stderr, status := late.wait()
	assert.Equal(t, 3, status, stderr)
	assert.Contains(t, stderr, "expired")
	for i, w := range map[int]*started{0: slow, 2: next} {
		stdout, stderr, status := w.wait()
		assert.Zero(t, status, stderr)
		assert.Equal(t, ownReply(all[i].tag)+"\n", stdout)
	}
	require.Len(t, r.deadLetters(), 1)
	assert.Equal(t, "expired", r.deadLetters()[0].Reason)
	assert.Zero(t, r.arrivals(all[1].text))
	r.quit(ctx, s)
}

// During a pause the entry in flight is answered and the next ones wait. After it the
// session continues at once.
func TestHeartbeatPause(t *testing.T) {
	ctx := within(t)
	how, letGo := held(ctx, "[e1]")
	r, s := persistingWith(ctx, t, how)
	all := some(4)
	r.add(all[:2]...)
	r.asked(ctx, "[e1]", 1)
	r.run("", "pause", "--reason", "the build server is down")
	view := r.status()
	assert.Equal(t, "answering", view.State)
	assert.Contains(t, view.Why, "delivery is paused since")
	letGo()
	r.until(ctx, "what was in flight is answered", func() bool { return len(r.results()) == 1 })
	r.add(all[2:]...)
	r.waiting(ctx, 1)

	view = r.status()
	assert.Equal(t, "paused", view.State)
	assert.Contains(t, view.Why, "the build server is down")
	assert.Equal(t, 3, view.Queued)
	assert.Nil(t, r.flying())
	assert.Equal(t, 2, r.turns())

	resumed := time.Now()
	r.run("", "resume")
	r.asked(ctx, "[e2]", 1)
	t.Logf("asked %s after resume was started", time.Since(resumed).Round(time.Millisecond))
	r.until(ctx, "all are answered", func() bool { return len(r.results()) == len(all) })
	r.waiting(ctx, 1)
	r.settled(answeredOnce(all...)...)
	assert.Equal(t, 5, r.turns(), "no idle tick")
	assert.NoFileExists(t, r.signal, fmt.Sprint("the stop was never approved: ", r.status().Why))
	r.quit(ctx, s)
}
