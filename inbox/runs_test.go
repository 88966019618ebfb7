package inbox_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/budget"
)

// spendOn delivers the next entry to a session of its own and charges it so many cents.
func spendOn(t *testing.T, box *inbox.Inbox, session string, cents int64) {
	t.Helper()
	deliverAt(t, box, session, 0)
	in(t, box, func(tx *inbox.Tx) {
		r := told(session, cents)
		r.Over = true
		require.NoError(t, tx.Charge(r))
		require.NoError(t, tx.Acknowledge("done"))
	})
}

func spentByRun(t *testing.T, box *inbox.Inbox, run string, load func(string) *inbox.Reading) int64 {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	spent, err := v.SpentByRun(run, load)
	require.NoError(t, err)
	require.NoError(t, v.Close())
	return spent.Nanos / cent
}

func runOf(t *testing.T, box *inbox.Inbox, id string) (inbox.RunAccount, bool) {
	t.Helper()
	a := account(t, box)
	return a.Run(id)
}

// What a run has cost is in the account once it has a limit. It counts what was spent
// before, and does not depend on a file that can be edited. Entries of other runs, also of
// one whose id begins alike, do not count.
func TestARunIsAccountedFor(t *testing.T) {
	box := newBox(t, "")
	for _, id := range []string{"r1/a", "r10/a", "r1", "r1/b", "r1/c"} {
		_, err := box.Append(t.Context(), inbox.Message{ID: id, Text: "x"}, 0)
		require.NoError(t, err)
	}
	spendOn(t, box, "s1", 3)
	spendOn(t, box, "s2", 50)
	spendOn(t, box, "s3", 60)
	assert.EqualValues(t, 3, spentByRun(t, box, "r1", nil), "as .costs.jsonl has it")
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.NoteRun("r1", 7*cent)) })
	require.NoError(t, os.Remove(box.CostsPath()))
	spendOn(t, box, "s4", 4)
	r, known := runOf(t, box, "r1")
	require.True(t, known)
	assert.EqualValues(t, 7*cent, r.Spent.Nanos)
	assert.EqualValues(t, 7*cent, r.Bound())

	// What a meter says beyond what was charged counts, also of a session that was killed.
	deliverAt(t, box, "s5", 0)
	assert.EqualValues(t, 12, spentByRun(t, box, "r1", func(session string) *inbox.Reading {
		if session != "s5" {
			return nil
		}
		r := told(session, 5)
		return &r
	}))

	// A person's limit counts in place of that of the flags, until it is taken back.
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.LimitRun("r1", 20*cent)) })
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.NoteRun("r1", 9*cent)) })
	r, _ = runOf(t, box, "r1")
	assert.EqualValues(t, 20*cent, r.Bound())
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.LimitRun("r1", 0)) })
	r, _ = runOf(t, box, "r1")
	assert.EqualValues(t, 9*cent, r.Bound())
}

// Noting the same again changes nothing, and the number of runs is bounded.
func TestTheAccountOfRunsIsBounded(t *testing.T) {
	box := newBox(t, "")
	for n := range 20 {
		in(t, box, func(tx *inbox.Tx) {
			require.NoError(t, tx.NoteRun(fmt.Sprint("run ", n), int64(n+1)))
			require.True(t, tx.Dirty())
		})
	}
	in(t, box, func(tx *inbox.Tx) {
		require.NoError(t, tx.NoteRun("run 19", 20))
		assert.False(t, tx.Dirty())
	})
	a := account(t, box)
	require.Len(t, a.Runs, 16)
	assert.Equal(t, "run 19", a.Runs[0].ID)
	assert.Equal(t, "run 4", a.Runs[15].ID)
}

// A letter whose run has reached its limit goes back once the run may cost more, or with
// dollars of its own: another limit would not let it go on.
func TestALetterOfARunAtItsLimit(t *testing.T) {
	box := newBox(t, "")
	_, err := box.Append(t.Context(), inbox.Message{ID: "r1/a", Text: "x"}, 0)
	require.NoError(t, err)
	deliverAt(t, box, "s1", 0)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.OverRun("its run cost 2 of 1 USD")) })
	l := letters(t, box)[0]
	run, is := l.OverRun()
	assert.Equal(t, "r1", run)
	assert.True(t, is)
	assert.Equal(t, inbox.ReasonOverBudget, l.Reason)
	require.ErrorContains(t, box.Requeueable(l), "heartbeat run resume r1 --max-cost-per-run USD")
	longer, err := l.WithLimits(budget.Limits{Time: 1 << 40})
	require.NoError(t, err)
	require.ErrorContains(t, box.Requeueable(longer), "its run has reached its limit")
	dearer, err := l.WithLimits(budget.Limits{Nanos: cent})
	require.NoError(t, err)
	require.NoError(t, box.Requeueable(dearer))
	require.NoError(t, box.Requeueable(l.WithinRun()))
	requeue(t, box, l.WithinRun())
	assert.NotContains(t, read(t, box.Path()), "raised")
}
