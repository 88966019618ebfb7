package worker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
)

func (w *world) sendAt(id string, members string) {
	w.publish(fmt.Sprintf(`{"prompt":%q,%s}`, id, members), nats.Header{message.HeaderMsgID: {id}})
}

func stamp(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }

// A message whose time has not come takes no slot, whatever the server forgets.
func TestAMessageForLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	a := w.start("one", nil)
	w.sendAt("later", `"not_before":"`+stamp(time.Hour)+`"`)
	w.sendAt("soon", `"not_before":"`+stamp(2*time.Second)+`"`)
	w.send("now")
	w.eventually("what can be answered", func() bool { return w.known("now") != nil && w.known("soon") != nil }, a)
	w.server.Restart(t)
	w.send("after")
	w.eventually("another answer", func() bool { return w.known("after") != nil }, a)
	assert.Nil(t, w.known("later"))
	w.eventually("nothing held but by the server", func() bool { return w.waiting() == 1 && len(a.held()) == 0 }, a)
	turns := w.turns()
	slices.Sort(turns[:min(2, len(turns))]) // on a busy machine the time of soon has come before the agent begins
	assert.Equal(t, []string{"now", "soon", "after"}, turns)
	assert.Contains(t, a.said(), "message later is given back: it is not to be delivered before")
	assert.Nil(t, w.lease("later"), "no copy counts for an attempt")
}

func TestAMessageThatIsTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	a := w.start("one", nil)
	w.sendAt("late", `"expires_at":"`+stamp(-time.Hour)+`"`)
	w.sendAt("never", `"expires_at":"`+stamp(time.Second)+`","not_before":"`+stamp(time.Hour)+`"`)
	w.send("now")
	w.settled(a, "late", "never", "now")
	for _, id := range []string{"late", "never"} {
		assert.Equal(t, upstream.WasDead, w.known(id).Outcome)
		assert.Equal(t, "expired", w.known(id).Reason)
	}
	assert.Equal(t, []string{"now"}, w.turns())
}

func entries(all []upstream.Claim) (ids []string) {
	for _, c := range all {
		ids = append(ids, c.Entry)
	}
	return ids
}

// What waits behind a stall is not worked on: others get it. What a session has goes on.
func TestWhatWaitsBehindAStallIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second) // what is no longer kept goes elsewhere after that
	w.hold()
	a := w.start("one", nil, "--slots", "3", "--stall", "1s")
	w.send("a", "b")
	w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
	// Before the turn, too, nothing moves; b comes again after that.
	w.eventually("one is held", func() bool {
		said := a.said()
		back := strings.Count(said, "message b is given back")
		return strings.Contains(said, "message a is no longer kept") && len(a.held()) == 1 && back > 0 && back == strings.Count(said, "message b came")
	}, a)
	assert.Equal(t, []string{"a"}, entries(a.held()))
	assert.NotContains(t, a.said(), "message b is no longer kept")
	came := w.lease("b").Copy
	b := w.start("two", nil, "--slots", "2", "--stall", "0", "--no-session")
	w.eventually("the other has it", func() bool { return strings.Contains(strings.Join(entries(b.held()), " "), "b") }, a, b)
	assert.Equal(t, came+1, w.lease("b").Copy, "it was taken no more while nothing moved")
	assert.Equal(t, 1, w.lease("b").Attempt)
	w.open()
	w.eventually("its own answer", func() bool { return w.known("a") != nil }, a, b)
	assert.Equal(t, "one", w.known("a").Agent)
	assert.Equal(t, []string{"a"}, w.turns())
}
