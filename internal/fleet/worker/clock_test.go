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
					Agent: agent, Host: "elsewhere", Stream: "WORK", Subject: ">", Consumer: consumer, Ledger: "another",
					EverySeconds: 30, Slots: 1, Started: now, At: now,
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
			_, err := w.up.Answer(ctx, upstream.Claim{
				Stream: "WORK", Seq: 1, Subject: m.Subject(), Ack: m.Reply(), Copy: 2, ID: "a", Entry: "a", Agent: "two",
			}, upstream.Answer{Reply: "done", Settled: upstream.Settled{Attempts: 1, At: now}})
			require.NoError(t, err)
			a.resume()
			w.publish("a", nats.Header{message.HeaderID: {"a"}}) // the same again
			w.says(a, "message a was settled by two before")
			assert.True(t, now.Equal(w.known("a").At), "an outcome has the time of its agent")
			assert.Empty(t, w.turns())
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
