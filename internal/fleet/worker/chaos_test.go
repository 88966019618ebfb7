package worker_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/long"
)

// TestChaos kills agents and what they started, restarts the server, and cuts connections,
// while three agents work through a stream.
func TestChaos(t *testing.T) {
	t.Parallel()
	messages := long.Messages(20, 250, 1000)
	w := newWorld(t, 10*time.Second) // a busy agent may be late to show that it is there
	w.setUpWith(10*time.Second, 100)
	random := rand.New(rand.NewPCG(14, uint64(messages)))
	proxies, agents := make([]*fleet.Proxy, 3), make([]*running, 3)
	dir := t.TempDir()
	launch := func(i int) {
		name := fmt.Sprint("agent", i)
		agents[i] = w.startAt(proxies[i].URL(), filepath.Join(dir, name, "inbox.jsonl"), name, nil)
	}
	for i := range agents {
		proxies[i] = fleet.NewProxy(t, w.server.Address())
		launch(i)
	}
	ids := make([]string, messages)
	for i := range ids {
		ids[i] = fmt.Sprint("m", i)
		w.send(ids[i])
	}
	kills, cuts, restarts := 0, 0, 0
	left := func() int {
		if w.server.Server() == nil {
			return messages
		}
		return int(w.waiting())
	}
	for n := 0; left() > 0 && n < 20*messages; n++ {
		w.worksOn(messages, n, agents...)
		// One fault about every half second: the work goes on in between.
		time.Sleep(time.Duration(200+random.IntN(600)) * time.Millisecond)
		i := random.IntN(len(agents))
		switch random.IntN(6) {
		case 0, 1:
			kills++
			agents[i].kill()
			launch(i)
		case 2:
			kills++
			agents[i].kill()
			agents[i].killLauncher()
			launch(i)
		case 3:
			cuts++
			proxies[i].Cut()
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			proxies[i].Heal()
		case 4:
			cuts++
			proxies[i].HalfOpen()
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			proxies[i].Heal()
		case 5:
			if restarts < 5 && n%3 == 0 {
				restarts++
				w.server.Restart(t)
			}
		}
	}
	w.eventually("an empty stream", func() bool { return w.waiting() == 0 }, agents...)
	doubts, unheard := 0, 0
	for _, id := range ids {
		r := w.known(id)
		require.NotNil(t, r, "message %s is lost", id)
		assert.Equal(t, upstream.WasAnswered, r.Outcome, "%s: %s", id, r.Reason)
		replies := w.replied(id)
		assert.LessOrEqual(t, replies, 1, "message %s was replied to twice", id)
		switch {
		case r.ReplyState != upstream.Sent:
			doubts++
		case replies == 0:
			unheard++
		}
	}
	twice := len(w.turns()) - messages
	t.Logf("%d messages, %d kills, %d partitions, %d restarts: %d turns twice, %d replies in doubt, %d unheard", messages, kills, cuts, restarts, twice, doubts, unheard)
	assert.LessOrEqual(t, twice, kills+cuts+restarts)
	// A connection that is cut under a reply leaves it in doubt as a kill does.
	assert.LessOrEqual(t, doubts, kills+cuts+restarts)
	// Who asked connects again, too, after the server was restarted, and a reply that comes
	// before that is heard by nobody: one of each agent's.
	assert.LessOrEqual(t, unheard, restarts*len(agents))
}
