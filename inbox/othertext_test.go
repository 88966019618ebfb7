package inbox_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/testing/script"
)

// other sends messages with a taken id and another text, and returns the error.
func other(t *testing.T, box *inbox.Inbox, m ...inbox.Message) string {
	t.Helper()
	before := read(t, box.Path())
	receipts, err := box.AppendAll(t.Context(), m, 0)
	require.ErrorIs(t, err, inbox.ErrOtherText)
	assert.Empty(t, receipts)
	assert.Equal(t, before, read(t, box.Path()))
	return err.Error()
}

// An id belongs to one text, wherever its entry is by now. Everything else may differ.
func TestAnIDWithAnotherText(t *testing.T) {
	box := newBox(t, "")
	send(t, box, inbox.Message{ID: "job", Text: "one"})
	send(t, box, inbox.Message{ID: "later", Text: "one", NotBefore: noon.Add(time.Hour)})
	same := inbox.Message{ID: "job", Text: "one", Metadata: map[string]any{"a": 1}, Expires: noon.Add(time.Hour)}
	another := inbox.Message{ID: "job", Text: "two"}
	check := func(found, says string) {
		t.Helper()
		r := send(t, box, same)
		assert.Equal(t, []any{found == "", found}, []any{r.Appended, r.Found})
		assert.Equal(t, `the id "job" is that of another entry, which `+says+` and whose text begins "one": it was not sent: choose another id, or send that text`, other(t, box, another))
	}
	check(inbox.FoundQueued, "is queued")
	assert.Contains(t, other(t, box, inbox.Message{ID: "later", Text: "two"}), "is scheduled")
	deliver(t, box)
	check(inbox.FoundInFlight, "is in flight")
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	check(inbox.FoundQueued, "is queued")
	settle(t, box, answer("done"))
	check(inbox.FoundAnswered, "was answered")
	assert.True(t, send(t, box, inbox.Message{ID: "jöb", Text: "two"}).Appended)
	assert.True(t, send(t, box, inbox.Message{ID: "jo\u0308b", Text: "three"}).Appended, "an id is its bytes")

	// A result that was rotated away is forgotten.
	require.NoError(t, os.Remove(beside(box, ".results.jsonl")))
	assert.True(t, send(t, box, another).Appended)
}

func TestAnIDOfADeadLetter(t *testing.T) {
	t.Parallel()
	box := newBox(t, "")
	one, two := inbox.Message{ID: "job", Text: "one"}, inbox.Message{ID: "job", Text: "two"}
	send(t, box, one)
	settle(t, box, orphan)
	assert.Contains(t, other(t, box, two), "became a dead letter")
	assert.Contains(t, other(t, box, one, two), "comes before it")
	assert.True(t, send(t, box, one).Appended, "the same may be sent again")
	settle(t, box, func(tx *inbox.Tx) error { return tx.Drop() })

	letters, _, err := script.Letters(box)
	require.NoError(t, err)
	in(t, box, func(tx *inbox.Tx) { _, err := tx.Requeue(letters[0], inbox.Mark{}); require.NoError(t, err) })
	assert.Contains(t, other(t, box, two), "is queued")
	settle(t, box, func(tx *inbox.Tx) error { return tx.Drop() })
	assert.True(t, send(t, box, two).Appended, "the letter was requeued, and that is over")
	settle(t, box, orphan)
	assert.Contains(t, other(t, box, one), "became a dead letter")
	letters, _, err = script.Letters(box)
	require.NoError(t, err)
	_, _, err = outcomes.Purge(t.Context(), box, letters)
	require.NoError(t, err)
	r := send(t, box, one)
	assert.True(t, r.Appended)
	in(t, box, func(tx *inbox.Tx) { _, err := tx.Cancel(r.EntryID, r.Start); require.NoError(t, err) })
	assert.True(t, send(t, box, two).Appended, "its sender took the first one back")
}

// A result keeps the beginning of a text. The rest is compared as long as the inbox has it.
func TestALongTextIsComparedWhole(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"a result's beginning": 150, "not in its result": 400, "in a file of its own": 3 << 20} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			begins := strings.Repeat("é", size/2)
			one, two := inbox.Message{ID: "job", Text: begins + " one"}, inbox.Message{ID: "job", Text: begins + " two"}
			send(t, box, one)
			deliver(t, box)
			assert.Equal(t, inbox.FoundInFlight, send(t, box, one).Found)
			other(t, box, two)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("")) })
			assert.Equal(t, inbox.FoundAnswered, send(t, box, one).Found)
			other(t, box, two)
			send(t, box, inbox.Message{Text: "x"})
			require.NoError(t, os.WriteFile(box.Path(), []byte(strings.Repeat("\x00", len(read(t, box.Path()))-1)+"\n"), 0o600))
			assert.Equal(t, inbox.FoundAnswered, send(t, box, one).Found)
			if size < 200 {
				other(t, box, two)
			} else {
				assert.Equal(t, inbox.FoundAnswered, send(t, box, two).Found, "nothing tells them apart any more")
			}
		})
	}
}

// One line of a batch that cannot be sent keeps the whole batch out.
func TestABatchWithAnotherText(t *testing.T) {
	box := newBox(t, "")
	send(t, box, inbox.Message{ID: "job", Text: "one"})
	other(t, box, inbox.Message{ID: "new", Text: "x"}, inbox.Message{ID: "job", Text: "two"}, inbox.Message{Text: "y"})
	assert.Contains(t, other(t, box, inbox.Message{ID: "new", Text: "x"}, inbox.Message{ID: "new", Text: "y"}), "comes before it")
}

// If many send different texts with one id at once, one gets in.
func TestOtherTextsAtOnce(t *testing.T) {
	box := newBox(t, "")
	var wait sync.WaitGroup
	var mu sync.Mutex
	appended := 0
	for i := range 8 {
		wait.Go(func() {
			r, err := box.Append(t.Context(), inbox.Message{ID: "job", Text: fmt.Sprint("text ", i)}, 0)
			mu.Lock()
			defer mu.Unlock()
			if r.Appended {
				appended++
			} else {
				assert.ErrorIs(t, err, inbox.ErrOtherText)
			}
		})
	}
	wait.Wait()
	assert.Equal(t, 1, appended)
	assert.Len(t, waitingIDs(t, box), 1)
}
