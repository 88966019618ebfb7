package inbox_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
)

// waits returns the waiting entries, as a view shows them.
func waits(t testing.TB, box *inbox.Inbox) (all []inbox.Waiting) {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	require.NoError(t, v.Waits(nil, func(w inbox.Waiting) bool { all = append(all, w); return true }))
	some, err := v.Next(len(all) + 1)
	require.NoError(t, err)
	assert.Len(t, some, len(all))
	n, err := v.Backlog(context.Background())
	require.NoError(t, err)
	assert.EqualValues(t, len(all), n.Entries)
	last := 0
	require.NoError(t, v.Last(len(all)+1, func(inbox.Waiting) { last++ }))
	assert.Equal(t, len(all), last)
	return all
}

// cancel cancels the waiting entries with those texts.
func cancel(t testing.TB, box *inbox.Inbox, texts ...string) {
	t.Helper()
	for _, text := range texts {
		found := false
		for _, w := range waits(t, box) {
			if w.Text != text {
				continue
			}
			in(t, box, func(tx *inbox.Tx) {
				l, err := tx.Cancel(w.EntryID, w.Start)
				require.NoError(t, err)
				assert.Equal(t, inbox.ReasonCanceled, l.Reason)
			})
			found = true
			break
		}
		require.True(t, found, text)
	}
}

func textsOf(all []inbox.Waiting) (list []string) {
	for _, w := range all {
		list = append(list, w.Text)
	}
	return list
}

func reasons(t testing.TB, box *inbox.Inbox) (all []string) {
	t.Helper()
	for _, d := range deadLetters(t, box) {
		all = append(all, fmt.Sprintf("%s %s", d.RawLine.Text, d.Reason))
	}
	return all
}

// A canceled entry is skipped, wherever it is, and becomes a dead letter once.
func TestCancel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		cancel  []string
		want    []string
	}{
		"first":           {"a\nb\nc\n", []string{"a"}, []string{"b", "c"}},
		"amid":            {"a\nb\nc\n", []string{"b"}, []string{"a", "c"}},
		"last":            {"a\nb\nc\n", []string{"c"}, []string{"a", "b"}},
		"all":             {"a\nb\nc\n", []string{"a", "b", "c"}, nil},
		"backwards":       {"a\nb\nc\nd\n", []string{"c", "b", "a"}, []string{"d"}},
		"every other":     {"a\nb\nc\nd\ne\n", []string{"b", "d"}, []string{"a", "c", "e"}},
		"with blanks":     {"\na\n\n \nb\r\n\nc\n", []string{"a", "b"}, []string{"c"}},
		"one of the same": {"a\nb\na\nc\n", []string{"a"}, []string{"b", "a", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, c.content)
			cancel(t, box, c.cancel...)
			assert.Equal(t, c.want, textsOf(waits(t, box)))
			assert.Equal(t, c.content, read(t, box.Path()), "the inbox is as it was")
			assert.Equal(t, c.want, drain(t, box))
			assert.Len(t, deadLetters(t, box), len(c.cancel))
			assert.Equal(t, fmt.Sprint(len(c.content)), cursorFile(t, box))
			echo(t, box.Path(), "a\n")
			assert.Equal(t, []string{"a"}, drain(t, box), "a later one is another entry")
		})
	}
}

// An entry that is in flight, settled, canceled or unknown cannot be canceled.
func TestCancelRefuses(t *testing.T) {
	box := newBox(t, "a\nb\nc\nd")
	turn(t, box)
	turn(t, box)
	refused := func(entryID string, start int64) error {
		var err error
		in(t, box, func(tx *inbox.Tx) { _, err = tx.Cancel(entryID, start) })
		return err
	}
	require.ErrorIs(t, refused(sha256Hex("a"), 0), inbox.ErrNotWaiting)
	require.ErrorIs(t, refused(sha256Hex("b"), 2), inbox.ErrNotWaiting)
	require.ErrorIs(t, refused(sha256Hex("c"), 5), inbox.ErrNotWaiting)
	require.ErrorIs(t, refused(sha256Hex("c"), 99), inbox.ErrNotWaiting)
	require.ErrorIs(t, refused(sha256Hex("d"), 6), inbox.ErrTorn)
	require.NoError(t, refused(sha256Hex("c"), 4))
	require.ErrorIs(t, refused(sha256Hex("c"), 4), inbox.ErrNotWaiting)
	assert.Equal(t, []string{"c canceled"}, reasons(t, box))
}

// An entry that was given back can be canceled.
func TestCancelGivenBack(t *testing.T) {
	box := newBox(t, "a\nb\n")
	deliver(t, box)
	giveBack(t, box)
	cancel(t, box, "a")
	assert.Equal(t, []string{"b"}, drain(t, box))
	assert.Equal(t, []string{"a canceled"}, reasons(t, box))
	assert.Equal(t, 1, deadLetters(t, box)[0].Attempts)
}

// The entry in flight does not affect a canceled entry behind it, whatever its outcome.
func TestCancelBehindTheEntryInFlight(t *testing.T) {
	for name, settle := range map[string]func(*inbox.Tx) error{
		"answered": answer("done"), "set aside": orphan, "given back": func(tx *inbox.Tx) error { return tx.GiveBack("", true) },
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "a\nb\nc\n")
			deliver(t, box)
			cancel(t, box, "b")
			settleNextOf(t, box, settle)
			want := []string{"c"}
			if name == "given back" {
				want = []string{"a", "c"}
			}
			assert.Equal(t, want, drain(t, box))
		})
	}
}

func settleNextOf(t testing.TB, box *inbox.Inbox, settle func(*inbox.Tx) error) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, settle(tx)) })
}

// Somebody edits waiting lines: a single canceled entry is recognised by its bytes, wherever it is.
func TestCancelThenEdit(t *testing.T) {
	box := newBox(t, "a\nb\nc\nd\n")
	turn(t, box)
	cancel(t, box, "c")
	write(t, box.Path(), "a\nb with more words\nc\nd\n")
	assert.NotContains(t, drain(t, box), "c")
	assert.Equal(t, []string{"c canceled"}, reasons(t, box))
}

// Another file in the inbox's place has entries of its own.
func TestCancelThenReplace(t *testing.T) {
	box := newBox(t, "one\ntwo\nthree\n")
	turn(t, box)
	cancel(t, box, "three")
	rewrite(t, box.Path(), "x\nthree\n")
	assert.Equal(t, []string{"x", "three"}, drain(t, box))
}

// A requeued letter is delivered, and its old line is not.
func TestCancelThenRequeue(t *testing.T) {
	box := newBox(t, "a\nb\nc\n")
	cancel(t, box, "b")
	requeue(t, box, letters(t, box)[0])
	assert.Equal(t, []string{"a", "c", "b"}, drain(t, box))
}

func TestCancelScheduled(t *testing.T) {
	now := clockOf(t, newBox(t, ""))
	for _, id := range []string{"x", "y"} {
		now.send(t, inbox.Message{ID: id, Text: id, NotBefore: noon.Add(time.Hour)})
	}
	all, err := now.box.Scheduled()
	require.NoError(t, err)
	in(t, now.box, func(tx *inbox.Tx) {
		l, err := tx.CancelScheduled(all[0].EntryID)
		require.NoError(t, err)
		assert.Equal(t, "x", l.ID)
	})
	in(t, now.box, func(tx *inbox.Tx) {
		_, err := tx.CancelScheduled(all[0].EntryID)
		require.ErrorIs(t, err, inbox.ErrNotWaiting)
	})
	now.set(noon.Add(2 * time.Hour))
	assert.Equal(t, []string{"y"}, drain(t, now.box))
}

// Many canceled entries in a row take little room in the journal.
func TestCancelMany(t *testing.T) {
	const count = 3000
	box := newBox(t, strings.Repeat("entry\n", count)+"last\n")
	in(t, box, func(tx *inbox.Tx) {
		for i := range int64(count) {
			_, err := tx.Cancel(sha256Hex("entry"), 6*i)
			require.NoError(t, err)
		}
	})
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Start(os.Getpid(), nil)) })
	assert.Less(t, fileSize(t, beside(box, ".inbox-journal")), int64(300<<10))
	assert.Equal(t, []string{"last"}, drain(t, box))
}

// In many places the number is bounded, and entries that were not canceled keep waiting.
func TestCancelInManyPlaces(t *testing.T) {
	const count = 1100
	box := newBox(t, strings.Repeat("x\ny\n", count))
	refused := 0
	in(t, box, func(tx *inbox.Tx) {
		for i := range int64(count) {
			if _, err := tx.Cancel(sha256Hex("x"), 4*i); err != nil {
				assert.ErrorContains(t, err, "entries at 500 places")
				refused++
			}
		}
	})
	assert.Equal(t, count-500, refused)
	assert.Len(t, waits(t, box), 2*count-500)
}

// A canceled name can be sent again, and a process that waits for it sees the letter.
func TestCancelThenSend(t *testing.T) {
	box := newBox(t, "")
	m := inbox.Message{ID: "job", Text: "x"}
	r, err := box.Append(context.Background(), m, 0)
	require.NoError(t, err)
	cancel(t, box, "x")
	o, err := outcomes.Await(context.Background(), box, r, 0)
	require.NoError(t, err)
	require.NotNil(t, o.DeadLetter)
	assert.Equal(t, inbox.ReasonCanceled, o.DeadLetter.Reason)
	r, err = box.Append(context.Background(), inbox.Message{ID: "job", Text: "y"}, 0)
	require.NoError(t, err)
	assert.True(t, r.Appended)
	assert.Equal(t, []string{"y"}, drain(t, box))
}
