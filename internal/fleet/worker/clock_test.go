package worker_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// TestClocksOfOthersDecideNothing has all that another agent writes be an hour ahead, or
// behind: what it says of itself, and what it decides. An agent writes no other times that
// leave its machine.
func TestClocksOfOthersDecideNothing(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3*time.Second)
			now := time.Now().Add(skew).UTC()
			ctx := fleet.Context(t)
			consumer := w.consumer().Name
			put := func(agent string) {
				value, err := json.Marshal(message.Presence{
					Agent: agent, Host: "elsewhere", Ledger: "another", EverySeconds: 30, Slots: 1, Started: now, At: now,
					Source: message.Source{Stream: "WORK", Subject: ">", Consumer: consumer},
				})
				require.NoError(t, err)
				_, err = w.l.Agents.Put(ctx, message.AgentKey(agent), value)
				require.NoError(t, err)
			}

			// It lives by the server's clock, so that its name is taken.
			put("two")
			refused := w.startAt(w.server.URL(), filepath.Join(t.TempDir(), "inbox.jsonl"), "two", nil, "--no-session")
			assert.Equal(t, 1, refused.ended(), refused.said())

			// And it can go on, so that what comes back waits for a second alone.
			a := w.start("one", nil, "--give-back", "--no-session")
			w.send("a")
			w.eventually("its entry", func() bool { return len(a.held()) == 1 && a.backlog() == 1 }, a)
			put("two")
			a.pause(time.Hour)
			w.says(a, "message a is given back")
			m := w.next(consumer)

			// What it decides is known.
			_, err := w.up.Answer(ctx, w.takes("two", m), upstream.Answer{Reply: "done", Settled: upstream.Settled{Attempts: 1, At: now}})
			require.NoError(t, err)
			a.resume()
			w.publish("a", nats.Header{message.HeaderID: {"a"}}) // the same again
			w.says(a, "message a was settled by agent two before")
			assert.True(t, now.Equal(w.known("a").At), "an outcome has the time of its agent")
			assert.Empty(t, w.turns())
		})
	}
}

// An agent's own clock decides nothing: what expires, and what is due, is so by the server's.
func TestAnAgentsOwnClockDecidesNothing(t *testing.T) {
	t.Parallel()
	// The session's clock is right here, and the entry has the times of the agent's.
	for skew, valid := range map[string]time.Duration{"2h": 10 * time.Minute, "-2h": 3 * time.Hour} {
		t.Run(skew, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, time.Minute)
			a := w.start("one", []string{skewVariable + "=" + skew})
			w.sendAt("valid", `"expires_at":"`+stamp(valid)+`"`)
			w.sendAt("late", `"expires_at":"`+stamp(-10*time.Minute)+`"`)
			w.sendAt("due", `"not_before":"`+stamp(-time.Second)+`"`)
			w.sendAt("later", `"not_before":"`+stamp(time.Hour)+`"`)
			w.says(a, "message later is given back")
			w.eventually("outcomes", func() bool { return w.known("valid") != nil && w.known("late") != nil && w.known("due") != nil }, a)
			assert.Equal(t, upstream.WasDead, w.known("late").Outcome)
			assert.Equal(t, []string{"valid", "due"}, w.turns())
			assert.Nil(t, w.known("later"))
		})
	}
}

// next is the next message of a consumer.
func (w *world) next(consumer string) jetstream.Msg {
	c, err := w.js.Consumer(fleet.Context(w.t), "WORK", consumer)
	require.NoError(w.t, err)
	m, err := c.Next(jetstream.FetchMaxWait(time.Minute))
	require.NoError(w.t, err)
	return m
}
