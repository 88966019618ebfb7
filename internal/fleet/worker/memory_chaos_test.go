package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/long"
)

// decisions are all that were made, although the bucket forgets them soon.
type decisions struct {
	mu    sync.Mutex
	by    map[string]map[string]bool // by message, the agents that decided
	first map[string]uint64          // by message, the revision of its first decision
	dead  []string
}

func (w *world) collect() *decisions {
	d := &decisions{by: map[string]map[string]bool{}, first: map[string]uint64{}}
	// A test may take longer than [fleet.Context] lasts.
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	watch, err := w.l.Results.Watch(ctx, "*")
	require.NoError(w.t, err)
	go func() {
		for e := range watch.Updates() {
			if e != nil && e.Operation() == jetstream.KeyValuePut {
				d.note(e)
			}
		}
	}()
	return d
}

func (d *decisions) note(e jetstream.KeyValueEntry) {
	r, err := upstream.ParseRecord(e.Value())
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by[r.ID] == nil {
		d.by[r.ID], d.first[r.ID] = map[string]bool{}, e.Revision()
	}
	d.by[r.ID][r.Agent] = true
	if r.Outcome == upstream.WasDead {
		d.dead = append(d.dead, r.ID+": "+r.Reason)
	}
}

func (d *decisions) len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.by)
}

// TestChaosWithAShortMemory has results forgotten after twice AckWait, agents away for longer than that,
// two of them with a clock that is two hours wrong, and messages that have keys. Each message is decided
// by one agent, replied to once, and those of a key are decided in their order.
func TestChaosWithAShortMemory(t *testing.T) {
	t.Parallel()
	messages, keys := long.Messages(15, 150, 600), long.Rounds(4, 50)
	w := newWorld(t, 3*time.Second)
	ctx := fleet.Context(t)
	plan, err := setup.Make(ctx, w.js, &setup.Wanted{
		Stream: "WORK", Subjects: []string{"work.>"}, AckWait: 3 * time.Second, MaxDeliver: 100, Duplicates: 2 * time.Second,
		KeepResults: 10 * time.Second, Replicas: 1, Given: map[string]bool{"keep-results": true, "duplicates": true, "max-deliver": true},
	})
	require.NoError(t, err)
	require.NoError(t, plan.Apply(ctx))
	decided := w.collect()
	random := rand.New(rand.NewPCG(32, uint64(messages)))
	dir, agents := t.TempDir(), make([]*running, 4)
	launch := func(i int) {
		name := fmt.Sprint("agent", i)
		var environ []string
		if i < 2 {
			environ = []string{skewVariable + "=" + []string{"2h", "-2h"}[i]}
		}
		agents[i] = w.startAt(w.server.URL(), filepath.Join(dir, name, "inbox.jsonl"), name, environ, "--slots", "2")
	}
	for i := range agents {
		launch(i)
	}
	ids, last := make([]string, messages), make([]uint64, keys)
	for i := range ids {
		ids[i] = fmt.Sprint("m", i)
		key := i % keys
		ack, err := w.js.PublishMsg(ctx, &nats.Msg{Subject: fmt.Sprint("work.a.", key), Data: []byte(ids[i]), Header: nats.Header{
			message.HeaderID: {ids[i]}, message.HeaderReply: {replyTo(ids[i])}, message.HeaderAfter: {strconv.FormatUint(last[key], 10)},
		}})
		require.NoError(t, err)
		last[key] = ack.Sequence
	}
	kills, away := 0, 0
	for n := 0; w.waiting() > 0 && n < 20*messages; n++ {
		w.worksOn(messages, n, agents...)
		time.Sleep(time.Duration(200+random.IntN(600)) * time.Millisecond)
		i := random.IntN(len(agents))
		kills++
		agents[i].kill()
		if random.IntN(2) == 0 {
			agents[i].killLauncher()
		}
		if random.IntN(8) == 0 {
			away++
			time.Sleep(12 * time.Second) // longer than results are kept
		}
		launch(i)
	}
	w.eventually("an empty stream, and empty ledgers", func() bool {
		held := 0
		for _, a := range agents {
			held += len(a.held())
		}
		return w.waiting() == 0 && held == 0
	}, agents...)
	w.eventually("all decisions", func() bool { return decided.len() == messages }, agents...)
	decided.mu.Lock()
	defer decided.mu.Unlock()
	assert.Empty(t, decided.dead)
	for i, id := range ids {
		assert.Len(t, decided.by[id], 1, "who decided about %s", id)
		assert.LessOrEqual(t, w.replied(id), 1, "replies to %s", id)
		if i >= keys {
			assert.Less(t, decided.first[ids[i-keys]], decided.first[id], "%s is behind %s", id, ids[i-keys])
		}
	}
	t.Logf("%d messages of %d keys, %d kills, %d of them away for longer than results are kept: %d turns twice",
		messages, keys, kills, away, len(w.turns())-messages)
}
