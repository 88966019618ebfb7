package supervise

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/money/price"
)

func TestReportInWords(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	r := Report{Reason: Drained, StartedAt: at, EndedAt: at.Add(-time.Hour), Wall: 65}
	assert.Equal(t, "drained: nothing was waiting", r.String())
	r.Answered, r.Sessions = 3, 1
	assert.Equal(t, "drained: 3 answered; 1 session, 1m 5s", r.String())
	r.Reason, r.Detail, r.Queued, r.Sessions, r.Restarts, r.Dropped = Paused, "for the night", 4, 3, 2, 1
	assert.Equal(t, "paused: 3 answered, 1 dropped, 4 queued; 3 sessions (2 restarts), 1m 5s: for the night", r.String())
	r.Cost = price.Price{Amount: price.Amount{Nanos: 2_610_000_000, Dollars: true, Unpriced: 1}}.Cost()
	assert.Equal(t, "paused: 3 answered, 1 dropped, 4 queued; 3 sessions (2 restarts), 1m 5s, 2.61+ USD: for the night", r.String())
	expired := Report{Reason: Drained, DeadLettered: 1, StartedAt: at, EndedAt: at.Add(2 * time.Millisecond), Wall: 0.002}
	assert.Equal(t, "drained: 0 answered, 1 dead-lettered; 0 sessions, 2ms", expired.String())
	assert.Equal(t, "busy: another launcher works", (&Report{Reason: Busy, Detail: "another launcher works"}).String())
}

// Where the last look at the inbox finds that nothing waits any more, no work is left.
func TestNothingIsLeft(t *testing.T) {
	r, box := newRun(t, Drain)
	r.Terminal.Signals = signals.Catch()
	defer r.Terminal.Signals.Stop()
	r.follow, _ = told(t, box)
	left := func() ending { return ending{reason: Left, detail: "the session ended, and entries wait"} }
	e := left()
	r.conclude(&e)
	assert.Equal(t, left(), e)
	assert.Equal(t, int64(2), r.report.Queued)
	change(t, box, deliver)
	change(t, box, answerAndDeliver)
	change(t, box, func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
	r.conclude(&e)
	assert.Equal(t, ending{reason: Drained}, e)
	assert.Regexp(t, "^2 answered", r.report.figures())

	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	locked := "lock inbox " + box.Path() + ": lock " + filepath.Join(box.Dir(), inbox.LockName) + ": held by another process"
	r.box, err = inbox.Open(box.Path(), inbox.Options{LockWait: time.Nanosecond})
	require.NoError(t, err)
	busy := ending{reason: Trouble, detail: locked}
	r.conclude(&busy)
	assert.Equal(t, locked, busy.detail, "what ended the work keeps it from being settled, too")
	require.NoError(t, tx.Close())

	r.before = inbox.Totals{Answered: 7, Dropped: 1}
	r.conclude(&e)
	assert.Regexp(t, "^2 answered;", r.report.figures(), "the state was removed during the run, and its counts with it")
}
