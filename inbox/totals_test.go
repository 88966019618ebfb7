package inbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// counts returns the totals without empty latency classes.
func counts(t testing.TB, box *inbox.Inbox) inbox.Totals {
	t.Helper()
	n := totals(t, box)
	var some []inbox.LatencyClass
	for _, c := range n.Latency {
		if c.Count > 0 {
			some = append(some, c)
		}
	}
	return inbox.Totals{
		Delivered: n.Delivered, Redelivered: n.Redelivered, Answered: n.Answered, Dropped: n.Dropped,
		DeadLetters: n.DeadLetters, Latency: some, LatencySum: n.LatencySum, LastAcknowledgedAt: n.LastAcknowledgedAt,
	}
}

func TestTotals(t *testing.T) {
	now := clockOf(t, newBox(t, "a\nb\n\"\"\nc\nd\n{\"prompt\":\"x\",\"expires_at\":\"2020-01-01T00:00:00Z\"}\ne\nf\n"))
	box := now.box
	assert.Equal(t, inbox.Totals{}, counts(t, box))
	deliver(t, box)
	assert.Equal(t, inbox.Totals{Delivered: 1}, counts(t, box))
	last := noon.Add(3 * time.Second)
	now.set(last)
	acknowledge(t, box, "done")
	want := inbox.Totals{
		Delivered: 1, Answered: 1, LatencySum: 3 * time.Second, LastAcknowledgedAt: &last,
		Latency: []inbox.LatencyClass{{Within: 5 * time.Second, Count: 1}},
	}
	assert.Equal(t, want, counts(t, box))

	for range 2 {
		deliver(t, box)
		giveBack(t, box)
	}
	settle(t, box, orphan)
	want.Delivered, want.Redelivered, want.DeadLetters = 4, 2, map[inbox.Reason]int64{inbox.ReasonOrphaned: 1}
	assert.Equal(t, want, counts(t, box))

	settle(t, box, (*inbox.Tx).Drop) // c, behind an empty entry
	want.Delivered, want.Dropped = 5, 1
	want.DeadLetters[inbox.ReasonEmpty] = 1
	assert.Equal(t, want, counts(t, box))

	settle(t, box, orphan)
	settle(t, box, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonExhausted) }) // e, behind an expired one
	want.Delivered = 7
	want.DeadLetters[inbox.ReasonOrphaned], want.DeadLetters[inbox.ReasonExpired], want.DeadLetters[inbox.ReasonExhausted] = 2, 1, 1
	assert.Equal(t, want, counts(t, box))

	tx := begin(t, box) // uncommitted steps are not counted
	e, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	_, err = tx.Deliver(e, inbox.Recipient{})
	require.NoError(t, err)
	require.NoError(t, tx.Acknowledge(""))
	require.NoError(t, tx.Close())
	assert.Equal(t, want, counts(t, box))
}

// An answer counts in the first class that it is fast enough for.
func TestLatencyClasses(t *testing.T) {
	t.Parallel()
	now := clockOf(t, newBox(t, strings.Repeat("x\n", 40)))
	bounds := []time.Duration{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200}
	var sum time.Duration
	took := func(d time.Duration) {
		t.Helper()
		now.set(noon)
		deliver(t, now.box)
		now.set(noon.Add(d))
		acknowledge(t, now.box, "")
		sum += max(0, d)
	}
	for _, b := range bounds {
		took(b * time.Second)
		took(b*time.Second + 1)
	}
	took(0)
	took(-time.Hour) // the clock was set back
	n := totals(t, now.box)
	require.Len(t, n.Latency, len(bounds)+1)
	for i, c := range n.Latency {
		want := inbox.LatencyClass{Count: 2}
		switch i {
		case 0:
			want.Count = 3
		case len(bounds):
			want.Count = 1
		}
		if i < len(bounds) {
			want.Within = bounds[i] * time.Second
		}
		assert.Equal(t, want, c, i)
	}
	assert.Equal(t, sum, n.LatencySum)
	assert.EqualValues(t, 2*len(bounds)+2, n.Answered)
}

// Totals outlive the journal's older records, new boots and rotated files.
func TestTotalsStay(t *testing.T) {
	reboot(t, "one")
	const n = 300
	box := newBox(t, strings.Repeat(strings.Repeat("x", 400)+"\n", n))
	first := read(t, box.Path())
	drain(t, box)
	require.Equal(t, first, read(t, box.Path()))
	require.NotContains(t, read(t, beside(box, journal)), `"seq":1,`, "it was trimmed")
	check := func() {
		t.Helper()
		got := totals(t, box)
		assert.EqualValues(t, n, got.Delivered)
		assert.EqualValues(t, n, got.Answered)
	}
	check()
	rename(t, box.ResultsPath(), box.ResultsPath()+".1")
	reboot(t, "two")
	in(t, box, func(*inbox.Tx) {})
	check()
	write(t, box.Path(), "")
	in(t, box, func(*inbox.Tx) {})
	check()
}

// A journal of an older version has no totals: they start at zero.
func TestTotalsOfAnOldJournal(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	turn(t, box)
	withoutMember(t, box, "totals")
	assert.Equal(t, inbox.Totals{}, counts(t, box))
	acknowledge(t, box, "done")
	got := counts(t, box)
	assert.EqualValues(t, 0, got.Delivered)
	assert.EqualValues(t, 1, got.Answered)
}

// withoutMember removes a member from each record of the journal.
func withoutMember(t testing.TB, box *inbox.Inbox, name string) {
	t.Helper()
	j := read(t, beside(box, journal))
	var all strings.Builder
	for l := range strings.Lines(written(j)) {
		_, body, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		if i := strings.Index(body, `,"`+name+`":{`); i >= 0 {
			end := i + strings.Index(body[i:], "}") + 1 // no object in it
			body = body[:i] + body[end:]
		}
		all.WriteString(sha256Hex(body)[:16] + " " + body + "\n")
	}
	write(t, beside(box, journal), filled(all.String(), j))
}
