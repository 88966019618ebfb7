package supervise

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
)

// told is a follower that looks only when it is called, and what it has said.
func told(t *testing.T, box *inbox.Inbox) (*follower, func() []string) {
	var said []string
	f, err := follow(box, func(_ time.Time, text string) { said = append(said, text) })
	require.NoError(t, err)
	close(f.stopped) // it is not run
	t.Cleanup(f.close)
	return f, func() []string {
		f.poll()
		now := said
		said = nil
		return now
	}
}

func answerAndDeliver(tx *inbox.Tx) error {
	return errors.Join(tx.Acknowledge("done"), deliver(tx))
}

// ahead makes a change of which the journal has all and the files beside it nothing, as it
// is for a moment in each commit, until the next transaction.
func ahead(t *testing.T, box *inbox.Inbox, f func(*inbox.Tx) error) {
	t.Helper()
	disk.TestOnlyObserver = func(op disk.Op) error {
		if op.Kind == disk.OpWrite && filepath.Base(op.Path) == ".results.jsonl" {
			return unix.ENOSPC
		}
		return nil
	}
	defer func() { disk.TestOnlyObserver = nil }()
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	require.NoError(t, f(tx))
	require.ErrorIs(t, tx.Commit(), inbox.ErrUnfollowed)
}

// An answer is told before the delivery after it, however often the follower looks while
// the journal is ahead of the results.
func TestToldInOrder(t *testing.T) {
	_, box := newRun(t, Drain)
	_, look := told(t, box)
	change(t, box, deliver)
	assert.Regexp(t, "^delivered ", look()[0])

	ahead(t, box, answerAndDeliver)
	assert.Empty(t, look())
	assert.Empty(t, look())
	change(t, box, func(*inbox.Tx) error { return nil })
	lines := look()
	require.Len(t, lines, 2)
	assert.Regexp(t, "^answered .*: done$", lines[0])
	assert.Regexp(t, "^delivered ", lines[1])
	assert.Empty(t, look(), "each once")
}

// The delivery after an entry that came and went between two looks is held back until the
// line of its answer can be read.
func TestToldAfterWhatNobodySaw(t *testing.T) {
	_, box := newRun(t, Drain)
	_, look := told(t, box)
	change(t, box, deliver)
	ahead(t, box, answerAndDeliver)
	assert.Empty(t, look())
	change(t, box, func(*inbox.Tx) error { return nil })
	lines := look()
	require.Len(t, lines, 3)
	for i, want := range []string{"^delivered ", "^answered .*: done$", "^delivered "} {
		assert.Regexp(t, want, lines[i])
	}
}

// A delivery that was over before the next look is told with its end.
func TestToldWhatNobodySaw(t *testing.T) {
	r, box := newRun(t, Drain)
	r.Settings.MaxAttempts = 1
	_, look := told(t, box)
	change(t, box, deliver)
	change(t, box, answerAndDeliver)
	_, err := r.settle(t.Context())
	require.NoError(t, err)
	lines := look()
	require.Len(t, lines, 4)
	for i, want := range []string{"^delivered ", "^answered ", "^delivered ", "^dead letter .*: orphaned$"} {
		assert.Regexp(t, want, lines[i])
	}
	assert.Empty(t, look())
}

// What a dead letter's reason and its failure both begin with stands once.
func TestToldWhyInOneWord(t *testing.T) {
	_, box := newRun(t, Drain)
	_, look := told(t, box)
	change(t, box, deliver)
	change(t, box, func(tx *inbox.Tx) error {
		return tx.DeadLetterFor(inbox.ReasonOverBudget, string(inbox.ReasonOverBudget), "it took 2 of 1 tokens")
	})
	assert.Regexp(t, "^dead letter .*: over_budget: it took 2 of 1 tokens$", look()[1])
}
