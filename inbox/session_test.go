package inbox_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func session(t testing.TB, box *inbox.Inbox, id string) inbox.Session {
	t.Helper()
	tx := begin(t, box)
	defer func() { require.NoError(t, tx.Close()) }()
	s := tx.In(id).Known()
	return s
}

func TestSessionIsRemembered(t *testing.T) {
	box := newBox(t, "")
	const id = "a/b\n\"c\" é"
	at := noon
	assert.Equal(t, inbox.Session{ID: id}, session(t, box, id), "unknown yet")
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In(id).Start(0, nil)) })
	assert.Equal(t, inbox.Session{ID: id, StartedSeq: 1, Process: inbox.ProcessOf(0), StartedAt: &at}, session(t, box, id))
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In(id).End()) })
	assert.Equal(t, inbox.Session{ID: id, StartedSeq: 1, Process: inbox.ProcessOf(0), StartedAt: &at, EndedAt: &at}, session(t, box, id))
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In(id).Start(os.Getpid(), nil)) })
	assert.Equal(t, inbox.Session{ID: id, StartedSeq: 3, Process: inbox.ProcessOf(os.Getpid()), StartedAt: &at}, session(t, box, id), "resumed")
	assert.Equal(t, inbox.Session{ID: "other"}, session(t, box, "other"))
}

// Eight sessions are remembered: those heard of last.
func TestOldSessionsAreForgotten(t *testing.T) {
	box := newBox(t, "")
	for i := range 8 {
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In(fmt.Sprint(i)).Start(i+1, nil)) })
	}
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("0").End()) })
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("8").Start(9, nil)) })
	assert.Zero(t, session(t, box, "1").PID, "the one longest silent")
	for _, id := range []string{"0", "2", "3", "4", "5", "6", "7", "8"} {
		assert.NotZero(t, session(t, box, id).PID, id)
	}
}

func TestFailureIsKept(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box) // to session s
	failure := &inbox.Failure{Error: "rate_limit", Message: "caf\ufffd", At: noon}
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Fail("rate_limit", "caf\xe9")) })
	assert.Equal(t, failure, session(t, box, "s").Failure)
	d := begin(t, box).InFlight()
	require.NotNil(t, d, "it is still in flight")
	assert.Equal(t, failure, d.Failure)
}

// A failure of one session does not affect another session's entry in flight.
func TestFailureOfAnotherSession(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("other").Fail("rate_limit", "")) })
	assert.NotNil(t, session(t, box, "other").Failure)
	assert.Nil(t, session(t, box, "s").Failure)
	assert.Nil(t, begin(t, box).InFlight().Failure)
}

func TestFailureEndsWithTheDelivery(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Fail("rate_limit", "")) })
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	assert.Equal(t, "one", deliver(t, box).Text)
	assert.Nil(t, begin(t, box).InFlight().Failure)
}

// Acknowledged counts a session's answers since another session answered.
func TestAcknowledgedIsCountedBySession(t *testing.T) {
	box := newBox(t, "1\n2\n3\n4\n5\n6\n")
	var counts []int
	for _, id := range []string{"a", "a", "b", "", "a", "a"} {
		in(t, box, func(tx *inbox.Tx) {
			e, err := tx.Next(inbox.Mark{})
			require.NoError(t, err)
			_, err = tx.Deliver(e, inbox.Recipient{SessionID: id})
			require.NoError(t, err)
		})
		acknowledge(t, box, "done")
		counts = append(counts, acknowledgedBy(t, box, id))
	}
	assert.Equal(t, []int{1, 2, 1, 1, 1, 2}, counts)
}

// acknowledgedBy returns how many entries the session answered.
func acknowledgedBy(t testing.TB, box *inbox.Inbox, id string) (n int) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { n = tx.In(id).Acknowledged() })
	return n
}

// The clock may go backwards: its reading is recorded as it is.
func TestClockGoesBackwards(t *testing.T) {
	path := newBox(t, oldContent).Path()
	now := noon
	box, err := inbox.Open(path, inbox.Options{Now: func() time.Time {
		now = now.Add(-time.Hour)
		return now.In(time.FixedZone("", 3600))
	}})
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "three"}, drain(t, box))
	for _, r := range results(t, box) {
		assert.Equal(t, r.DeliveredAt.Add(-time.Hour), r.AcknowledgedAt)
		assert.Equal(t, time.UTC, r.DeliveredAt.Location())
	}
}
