package worker_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What an agent tells a server for each message that it answers, besides what goes by the clock. Package upstream
// counts how often it asks which stream there is.
func TestTheMessagesOfAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10*time.Minute) // nothing is kept or looked up again meanwhile
	kinds := map[string]string{
		"$JS.API.CONSUMER.MSG.NEXT.": "pull", "$JS.API.DIRECT.GET.KV_WORK-results.": "look", "$JS.ACK.": "acknowledgement",
		"$KV.WORK-results.lease.": "lease", "$KV.WORK-results.answer.": "text", "$KV.WORK-results.": "decision",
	}
	var mu sync.Mutex
	heard := map[string]int{}
	for _, all := range []string{"$JS.API.>", "$JS.ACK.>", "$KV.WORK-results.>"} {
		_, err := w.nc.Subscribe(all, func(m *nats.Msg) {
			kind, longest := "", 0
			for prefix, is := range kinds {
				if strings.HasPrefix(m.Subject, prefix) && len(prefix) > longest {
					kind, longest = is, len(prefix)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			heard[kind]++
		})
		require.NoError(t, err)
	}
	require.NoError(t, w.nc.Flush())
	ids := []string{"a", "b", "c", "d", "e"}
	for _, id := range ids {
		w.publish(id, nats.Header{"Heartbeat-Id": {id}})
	}
	a := w.start("one", nil)
	w.eventually("an empty stream", func() bool { return w.waiting() == 0 }, a)
	n := len(ids)
	w.eventually("the last acknowledgement", func() bool { // it is told to this test when the server has it already
		mu.Lock()
		defer mu.Unlock()
		return heard["acknowledgement"] >= n
	}, a)
	require.NoError(t, w.nc.Flush())
	mu.Lock()
	defer mu.Unlock()
	delete(heard, "")
	assert.LessOrEqual(t, heard["pull"], n+1)
	delete(heard, "pull")
	assert.Equal(t, map[string]int{"lease": n, "text": n, "decision": n, "acknowledgement": n}, heard)
}
