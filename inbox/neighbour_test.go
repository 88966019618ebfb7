package inbox_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func TestTwoInboxesInOneDirectory(t *testing.T) {
	for name, claim := range map[string]func(t testing.TB, box *inbox.Inbox){
		"in flight": func(t testing.TB, box *inbox.Inbox) { turn(t, box) },
		"drained":   func(t testing.TB, box *inbox.Inbox) { drain(t, box) },
		"appended to": func(t testing.TB, box *inbox.Inbox) {
			_, err := box.Append(context.Background(), inbox.Message{Text: "x"}, 0)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			claim(t, box)
			other := open(t, beside(box, "other.jsonl"))
			write(t, other.Path(), "theirs\n")
			before := snapshot(t, box)
			_, err := other.Begin(context.Background())
			require.ErrorIs(t, err, inbox.ErrOtherInbox)
			assert.ErrorContains(t, err, "give other.jsonl a directory of its own")
			_, err = other.Append(context.Background(), inbox.Message{Text: "x"}, 0)
			require.ErrorIs(t, err, inbox.ErrOtherInbox)
			assert.Equal(t, before, snapshot(t, box), "nothing was changed")
		})
	}
}

// An .in-flight of ours names its inbox, even if the journal is lost.
func TestInFlightOfAnotherInbox(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	require.NoError(t, os.Remove(beside(box, ".inbox-journal")))
	other := open(t, beside(box, "other.jsonl"))
	_, err := other.Begin(context.Background())
	require.ErrorIs(t, err, inbox.ErrOtherInbox)
	assert.Equal(t, []string{"two", "three"}, drain(t, box))
}

func TestRenamedInbox(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	acknowledge(t, box, "reply")
	renamed := open(t, beside(box, "renamed.jsonl"))
	require.NoError(t, os.Rename(box.Path(), renamed.Path()))
	assert.Len(t, in(t, renamed, func(*inbox.Tx) {}), 1)
	assert.Empty(t, in(t, renamed, func(*inbox.Tx) {}))
	assert.Equal(t, []string{"two", "three"}, drain(t, renamed))
}

// With an entry in flight, the renamed inbox needs the step that the error names. Answered entries
// stay answered.
func TestRenamedInboxWithAnEntryInFlight(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	require.Equal(t, "two", turn(t, box))
	renamed := open(t, beside(box, "renamed.jsonl"))
	require.NoError(t, os.Rename(box.Path(), renamed.Path()))
	_, err := renamed.Begin(context.Background())
	require.ErrorIs(t, err, inbox.ErrOtherInbox)
	require.ErrorContains(t, err, "recover under the old name first")

	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned)) })
	assert.Equal(t, []string{"three"}, drain(t, renamed))
}
