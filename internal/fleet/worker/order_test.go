package worker_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// Messages of one key are answered in their order, one at a time, also when an agent is killed with
// one. Those of other keys go on beside them.
func TestMessagesOfAKeyAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20*time.Second) // the killed agent is back before
	const keys, each = 3, 4
	var ids []string
	last := map[int]uint64{}
	for n := range each {
		for key := range keys {
			id := fmt.Sprintf("%d-%d", key, n)
			m := &nats.Msg{Subject: fmt.Sprintf("work.a.%d", key), Data: []byte(id), Header: nats.Header{
				message.HeaderID: {id}, message.HeaderAfter: {strconv.FormatUint(last[key], 10)},
			}}
			ack, err := w.js.PublishMsg(fleet.Context(t), m)
			require.NoError(t, err)
			last[key] = ack.Sequence
			ids = append(ids, id)
		}
	}
	a := w.start("one", []string{killVariable + "=answered"}, "--slots", "2")
	b := w.start("two", nil, "--slots", "2")
	<-a.Done
	a = a.again(w, "--slots", "2")
	w.settled(b, ids...)
	revision := func(key string) uint64 {
		e, err := w.l.Results.Get(fleet.Context(t), key)
		require.NoError(t, err)
		return e.Revision()
	}
	for _, id := range ids {
		assert.Equal(t, upstream.WasAnswered, w.known(id).Outcome)
	}
	for key := range keys {
		for n := 1; n < each; n++ {
			before, after := fmt.Sprintf("%d-%d", key, n-1), fmt.Sprintf("%d-%d", key, n)
			assert.Less(t, revision(message.Key(before)), revision(message.LeaseKey(after)), "%s was decided before %s was taken", before, after)
		}
	}
	assert.NotContains(t, a.said(), "superseded")
}

// The one before may be gone without an outcome, and a header may be wrong.
func TestAMessageBehindOneThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	w.send("x")
	s, err := w.js.Stream(fleet.Context(t), "WORK")
	require.NoError(t, err)
	require.NoError(t, s.DeleteMsg(fleet.Context(t), 1))
	for _, after := range []string{"1", "99", "3", "no", ""} {
		w.publish("after "+after, nats.Header{message.HeaderID: {"after-" + after}, message.HeaderAfter: {after}})
	}
	a := w.start("one", nil)
	w.settled(a, "after-1", "after-99", "after-3", "after-no", "after-")
}

// What a backlog of one key costs does not grow with its length: an agent looks at each message that waits the later,
// the more of its key come before it.
func TestABacklogOfAKeyIsLookedAtSeldom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	w.hold()
	const backlog = 30
	var mu sync.Mutex
	delays := map[uint64]time.Duration{} // of each message's first give-back
	_, err := w.nc.Subscribe("$JS.ACK.>", func(m *nats.Msg) {
		at, _ := (&nats.Msg{Reply: m.Subject, Sub: m.Sub}).Metadata()
		var nak struct {
			Delay time.Duration `json:"delay"`
		}
		if text, is := strings.CutPrefix(string(m.Data), "-NAK "); is && at.NumDelivered == 1 && json.Unmarshal([]byte(text), &nak) == nil {
			mu.Lock()
			defer mu.Unlock()
			delays[at.Sequence.Stream] = nak.Delay
		}
	})
	require.NoError(t, err)
	require.NoError(t, w.nc.Flush())
	last := uint64(0)
	for n := range backlog {
		m := &nats.Msg{Subject: "work.a.key", Data: []byte("x"), Header: nats.Header{
			message.HeaderID: {strconv.Itoa(n)}, message.HeaderAfter: {strconv.FormatUint(last, 10)},
		}}
		ack, err := w.js.PublishMsg(fleet.Context(t), m)
		require.NoError(t, err)
		last = ack.Sequence
	}
	a := w.start("one", nil, "--slots", "2")
	w.eventually("a look at each", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(delays) == backlog-1
	}, a)
	mu.Lock()
	defer mu.Unlock()
	assert.LessOrEqual(t, delays[2], 8*time.Second, "the next one")
	assert.Greater(t, delays[last], 8*time.Second, "the last one")
}

// Once a message of a key is settled, the agent has the next one handed out again that it gave back.
func TestTheNextOfAKeyIsCalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	w.hold()
	var looks, calls atomic.Int64
	_, err := w.nc.Subscribe("$JS.ACK.>", func(m *nats.Msg) {
		switch {
		case string(m.Data) == "-NAK":
			calls.Add(1)
		case strings.HasPrefix(string(m.Data), "-NAK "):
			looks.Add(1)
		}
	})
	require.NoError(t, err)
	require.NoError(t, w.nc.Flush())
	const all = 10
	var ids []string
	for n := range all {
		id, after := fmt.Sprintf("m-%d", n), strconv.Itoa(n) // the sequence of the one before it
		_, err := w.js.PublishMsg(fleet.Context(t), &nats.Msg{Subject: "work.a.key", Data: []byte(id), Header: nats.Header{
			message.HeaderID: {id}, message.HeaderAfter: {after},
		}})
		require.NoError(t, err)
		ids = append(ids, id)
	}
	a := w.start("one", nil, "--slots", "3")
	w.eventually("a look at each that waits", func() bool { return looks.Load() >= all-1 }, a)
	w.open()
	w.settled(a, ids...)
	assert.Positive(t, calls.Load())
	assert.Equal(t, ids, w.turns())
}
