package client

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/model"
)

// besides starts an agent without sessions of its own, beside one that somebody started by
// hand with the hook installed.
func (m *member) besides(ctx context.Context, policy string) *Session {
	m.t.Helper()
	m.install("--rewake", "--on-orphan", policy)
	s := m.attended(ctx, m.options())
	m.waiting(ctx, 1)
	m.flags = append(m.flags, "--no-session")
	m.startsAs()
	return s
}

// An agent that runs no sessions feeds one that a person started by hand. The session is
// woken, and each message is answered.
func TestFleetNoSession(t *testing.T) {
	ctx := forLong(t)
	c := newCrew(t, working(), "--ack-wait", "1m")
	m := c.join("desk")
	s := m.besides(ctx, "retry")
	all := jobs(4)
	c.send(all...)
	c.isEmpty(ctx)
	k := c.keptOnce(all...)
	assert.Equal(t, kept{by: map[string]int{"desk": len(all)}}, k)
	c.command("drain", "desk", "--wait")
	assert.Zero(t, m.ended(ctx), m.said())
	m.quit(ctx, s)
}

// A person who interrupts the turn of a message, and says something else, or ends the
// session, loses no message: it is kept, and said to be in flight or to wait, until a
// session answers it.
func TestFleetNoSessionInterrupted(t *testing.T) {
	for name, then := range map[string]func(ctx context.Context, m *member, s *Session){
		"Esc, and a prompt": func(ctx context.Context, m *member, s *Session) {
			require.NoError(m.t, s.Submit(ctx, prompt(2)))
		},
		"Esc and /exit, and another session": func(ctx context.Context, m *member, s *Session) {
			require.NoError(m.t, s.Submit(ctx, "/exit"))
			_, err := s.Wait(ctx)
			require.NoError(m.t, err)
			assert.Len(m.t, m.held(), 1)
			m.crew.until(ctx, "status says that nobody works on it", func() bool {
				return strings.Contains(m.crew.command("status"), "with an agent that is held up: desk: the entry job.1 was in flight when session")
			})
			s = m.Interactive(m.options())
			require.NoError(m.t, s.WaitReady(ctx))
			require.NoError(m.t, s.Submit(ctx, prompt(2)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := forLong(t)
			c := newCrew(t, first("[m1]", model.Hang()).script(), "--ack-wait", "1m")
			m := c.join("desk")
			s := m.besides(ctx, "retry")
			all := jobs(1)
			c.send(all...)
			m.asked(ctx, "[m1]", 1)
			c.until(ctx, "status names it", func() bool { return strings.Contains(c.command("status"), "job.1") })
			from := len(s.Screen())
			require.NoError(t, s.Esc())
			_, err := s.WaitScreen(ctx, from, "Interrupted")
			require.NoError(t, err)
			require.Len(t, m.held(), 1, "an interrupted turn has no end")
			then(ctx, m, s)
			c.isEmpty(ctx)
			k := c.keptOnce(all...)
			assert.Equal(t, kept{twice: 1, by: map[string]int{"desk": 1}}, k)
			assert.EqualValues(t, 1, c.consumer().Delivered.Consumer)
			t.Log(m.said())
		})
	}
}

// A session that the agent's launcher runs ends in the middle of a message, as /exit or a
// closed terminal ends it: another session answers it.
func TestFleetSessionEnds(t *testing.T) {
	for _, flags := range [][]string{{"--mode", "drain"}, {"--mode", "persist"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			ctx := forLong(t)
			c := newCrew(t, first("[m1]", model.Hang()).script(), "--ack-wait", "1m")
			m := c.join("one", append(flags, "--launch", "--max-entries=2", "--launch", "--size=30x90")...).starts()
			all := jobs(3)
			c.send(all...)
			m.asked(ctx, "[m1]", 1)
			for _, pid := range m.clients() {
				require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
			}
			c.isEmpty(ctx)
			k := c.keptOnce(all...)
			assert.Equal(t, kept{twice: 1, by: map[string]int{"one": len(all)}}, k)
			assert.EqualValues(t, len(all), c.consumer().Delivered.Consumer)
			c.command("drain", "one")
			assert.Zero(t, m.ended(ctx), m.said())
			m.sessionsGone(ctx)
		})
	}
}

// Where the hook's own rule is to set an interrupted entry aside, its message becomes a dead
// letter, with the reason.
func TestFleetNoSessionSetAside(t *testing.T) {
	ctx := forLong(t)
	c := newCrew(t, first("[m1]", model.Hang()).script(), "--ack-wait", "1m")
	m := c.join("desk")
	s := m.besides(ctx, "deadletter")
	all := jobs(2)
	c.send(all...)
	m.asked(ctx, "[m1]", 1)
	from := len(s.Screen())
	require.NoError(t, s.Esc())
	_, err := s.WaitScreen(ctx, from, "Interrupted")
	require.NoError(t, err)
	require.NoError(t, s.Submit(ctx, prompt(2)))
	c.isEmpty(ctx)
	c.keptOnce(all[1])
	r := c.known(all[0])
	require.NotNil(t, r)
	assert.Equal(t, upstream.WasDead, r.Outcome)
	assert.Equal(t, "interrupted", r.Reason)
	assert.Empty(t, c.replied(all[0]))
	assert.Contains(t, c.command("dead", "show", "job.1"), all[0].text())
}
