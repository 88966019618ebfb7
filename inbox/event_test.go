package inbox_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func events(t testing.TB, box *inbox.Inbox) []inbox.Event {
	t.Helper()
	return linesOf[inbox.Event](t, box.EventsPath())
}

// Each rare thing in an entry's life leaves one line.
func TestEvents(t *testing.T) {
	t.Parallel()
	const line = `{"prompt":"x","id":"job"}`
	until, delivered := noon.Add(time.Hour), noon
	entry := inbox.Event{At: noon, EntryID: sha256Hex(line), ID: "job", Attempt: 1, Session: "s", DeliveredAt: &delivered}
	of := func(kind inbox.EventKind, reason string) inbox.Event {
		e := entry
		e.Event, e.Reason = kind, reason
		return e
	}
	for name, c := range map[string]struct {
		do   func(t testing.TB, tx *inbox.Tx) error
		want []inbox.Event
	}{
		"given back": {func(_ testing.TB, tx *inbox.Tx) error { return tx.GiveBack("", true) }, []inbox.Event{of(inbox.EventRedelivered, "")}},
		"never arrived": {func(_ testing.TB, tx *inbox.Tx) error { return tx.GiveBack(inbox.NeverArrived, false) }, []inbox.Event{
			{At: noon, Event: inbox.EventRedelivered, EntryID: sha256Hex(line), ID: "job", Session: "s", Uncounted: true, DeliveredAt: &delivered, Reason: inbox.NeverArrived},
		}},
		"dropped":       {func(_ testing.TB, tx *inbox.Tx) error { return tx.Drop() }, []inbox.Event{of(inbox.EventDropped, "")}},
		"answered":      {func(_ testing.TB, tx *inbox.Tx) error { return tx.Acknowledge("") }, nil},
		"dead-lettered": {func(_ testing.TB, tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) }, nil},
		"failed": {func(_ testing.TB, tx *inbox.Tx) error { return tx.In("s").Fail("overloaded", "later") }, []inbox.Event{
			of(inbox.EventFailed, "overloaded: later"),
		}},
		"another session failed": {func(_ testing.TB, tx *inbox.Tx) error { return tx.In("t").Fail("overloaded", "") }, []inbox.Event{
			{At: noon, Event: inbox.EventFailed, Session: "t", Reason: "overloaded"},
		}},
		"session started and ended": {func(t testing.TB, tx *inbox.Tx) error {
			require.NoError(t, tx.In("s").Start(1, nil))
			return tx.In("s").End()
		}, []inbox.Event{{At: noon, Event: inbox.EventStarted, Session: "s"}, {At: noon, Event: inbox.EventEnded, Session: "s"}}},
		"contested": {func(t testing.TB, tx *inbox.Tx) error {
			tx.In("s").LeaveInDoubt(tx.InFlight(), nil)
			tx.In("s").Contest("not done\nby far")
			require.Nil(t, tx.In("s").Doubt())
			tx.In("s").Contest("once")
			return nil
		}, []inbox.Event{{At: noon, Event: inbox.EventContested, EntryID: sha256Hex(line), ID: "job", Attempt: 1, Session: "s", Reason: "not done"}}},
		"not contested": {func(t testing.TB, tx *inbox.Tx) error {
			tx.In("s").LeaveInDoubt(tx.InFlight(), nil)
			tx.In("s").Contest("")
			return nil
		}, nil},
		"paused and resumed": {func(t testing.TB, tx *inbox.Tx) error {
			_, err := tx.Holds().Pause("why", &until)
			require.NoError(t, err)
			return tx.Holds().Resume()
		}, []inbox.Event{{At: noon, Event: inbox.EventPaused, Reason: "why", Until: &until}, {At: noon, Event: inbox.EventResumed}}},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, line+"\n")
			deliver(t, box)
			assert.Empty(t, events(t, box), "a delivery is none")
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, c.do(t, tx)) })
			assert.Equal(t, c.want, events(t, box))
		})
	}
}

// A replaced inbox leaves one event.
func TestReplacedInboxLeavesAnEvent(t *testing.T) {
	box := newBox(t, oldContent)
	drain(t, box)
	require.NoError(t, os.Truncate(box.Path(), 0))
	for range 2 {
		in(t, box, func(*inbox.Tx) {})
	}
	all := events(t, box)
	require.Len(t, all, 1)
	assert.Equal(t, inbox.EventReplaced, all[0].Event)
	assert.Contains(t, all[0].Reason, "beyond the end")
	assert.Equal(t, noon, all[0].At)
}
