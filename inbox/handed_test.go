package inbox_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/testing/crash"
)

// handOver delivers the next entry, and notes that its text went out.
func handOver(t testing.TB, box *inbox.Inbox) { handOverAfter(t, box, nil) }

// handOverAfter is [handOver] where the commit of the delivery ends so.
func handOverAfter(t testing.TB, box *inbox.Inbox, commit error) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", Evidence: []byte(`{"n":1}`)})
		require.NoError(t, err)
		assert.False(t, tx.IsHandedOver())
		require.ErrorIs(t, tx.Commit(), commit)
		require.NoError(t, tx.HandedOver())
		assert.True(t, tx.IsHandedOver())
	})
}

func isHandedOver(t testing.TB, box *inbox.Inbox) (handed bool) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { handed = tx.IsHandedOver() })
	return handed
}

// The note belongs to one delivery. It outlives other commits, the journal's trimming and a new boot.
func TestHandedOver(t *testing.T) {
	box := newBox(t, "one\ntwo\nthree\n")
	deliver(t, box)
	assert.False(t, isHandedOver(t, box), "nobody said so")
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	handOver(t, box)
	assert.True(t, isHandedOver(t, box))

	_, err := box.Append(context.Background(), inbox.Message{Text: "four"}, 0)
	require.NoError(t, err)
	assert.True(t, isHandedOver(t, box), "another commit came in between")

	for i := range 200 { // each record holds what it appends
		_, err := box.Append(context.Background(), inbox.Message{Text: fmt.Sprint(i) + strings.Repeat("x", 3000)}, 0)
		require.NoError(t, err)
	}
	assert.NotContains(t, written(read(t, beside(box, journal))), `"seq":2,`, "the journal was trimmed")
	assert.True(t, isHandedOver(t, box))

	machine.TestOnlyBootID = "the next boot"
	defer func() { machine.TestOnlyBootID = "" }()
	assert.True(t, isHandedOver(t, box))

	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("done")) })
	assert.False(t, isHandedOver(t, box), "nothing is in flight")
	deliver(t, box)
	assert.False(t, isHandedOver(t, box), "it was another delivery")
}

// The note holds for that delivery, whatever was edited around it, and for no other that somebody
// puts into .in-flight.
func TestHandedOverIsOfThatDelivery(t *testing.T) {
	for edit, want := range map[[2]string]bool{
		{`"attempt":1`, `"attempt":2`}:           true,
		{`"evidence":{"n":1}`, `"evidence":{}`}:  false,
		{`"entry_id":"`, `"entry_id":"another-`}: false,
	} {
		box := newBox(t, "one\ntwo\n")
		handOver(t, box)
		inFlight := beside(box, ".in-flight")
		require.Contains(t, read(t, inFlight), edit[0])
		write(t, inFlight, strings.Replace(read(t, inFlight), edit[0], edit[1], 1))
		assert.Equal(t, want, isHandedOver(t, box), edit[1])
	}
}

// The note does not mean that the documented files have followed. Where they did not, they are
// repaired, and the next commit keeps the note.
func TestHandedOverWithoutFollowing(t *testing.T) {
	box := newBox(t, "one\ntwo\n")
	stop := crash.Observe(t, func(op disk.Op) error {
		if op.Path == beside(box, ".in-flight") {
			return unix.EIO
		}
		return nil
	})
	handOverAfter(t, box, inbox.ErrUnfollowed)
	stop()
	assert.NoFileExists(t, beside(box, ".in-flight"))
	assert.False(t, isHandedOver(t, box), "unknown: it could not be noted")
	assert.FileExists(t, beside(box, ".in-flight"))
}

// The note is one write to an open file, without a sync.
func TestHandedOverCost(t *testing.T) {
	box := newBox(t, "one\n")
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		r := crash.Recorder{}
		defer crash.Observe(t, r.Observe)()
		require.NoError(t, tx.HandedOver())
		ops := r.Ops()
		require.Len(t, ops, 1)
		assert.Equal(t, disk.OpWrite, ops[0].Kind)
		assert.Less(t, len(ops[0].Data), 200)
	})
}

func TestHandedOverWithNothingInFlight(t *testing.T) {
	in(t, newBox(t, "one\n"), func(tx *inbox.Tx) {
		require.ErrorContains(t, tx.HandedOver(), "nothing is in flight")
		assert.False(t, tx.IsHandedOver())
	})
}

// TestTornMarks: a power loss may take any of the unsynced marks behind a record, and leave later ones.
func TestTornMarks(t *testing.T) {
	box := newBox(t, "one\ntwo\n")
	handOver(t, box)
	path := beside(box, ".inbox-journal")
	journal, err := os.ReadFile(path)
	require.NoError(t, err)
	first := bytes.Index(journal, []byte(`{"followed":`))
	last := bytes.LastIndex(journal, []byte(`{"followed":`))
	require.Less(t, first, last)
	for _, broken := range [][]int{{first}, {last}, {first, last}} {
		torn := bytes.Clone(journal)
		for _, at := range broken {
			torn[at+3] = 0
		}
		require.NoError(t, os.WriteFile(path, torn, 0o600))
		assert.Equal(t, !slices.Contains(broken, last), isHandedOver(t, box), broken)
	}
	// A mark that a power loss left does not count for a later, shorter record.
	torn := bytes.Clone(journal)
	copy(torn[bytes.IndexByte(torn, 0)+700:], journal[first-17:last-17])
	require.NoError(t, os.WriteFile(path, torn, 0o600))
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("done")); require.NoError(t, tx.Commit()) })
	in(t, box, func(tx *inbox.Tx) { assert.Equal(t, int64(4), tx.Cursor()) })
}
