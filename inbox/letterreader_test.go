package inbox_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
)

// With the lock only new lines are read.
func TestLetterReader(t *testing.T) {
	t.Parallel()
	box := newBox(t, "a\nb\nc\n")
	path := beside(box, ".dead-letter.jsonl")
	line := func(id string) string {
		return fmt.Sprintf("{\"entry_id\":%q,\"raw_line\":%q,\"reason\":\"orphaned\"}\n", id, strings.Repeat(id, 300<<10))
	}
	r := outcomes.NewLetterReader(box)
	warnings, err := r.Read()
	require.NoError(t, err)
	assert.Empty(t, warnings)

	update := func() error {
		tx, err := box.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Close()) }()
		return r.Update(tx)
	}
	names := func() (of []string) {
		t.Helper()
		warnings, err := r.Read()
		require.NoError(t, err)
		assert.Empty(t, warnings)
		require.NoError(t, r.Each(func(l inbox.Letter) bool {
			of = append(of, l.EntryID)
			return true
		}))
		return of
	}
	write(t, path, line("x")+line("y")+line("z")+line("v"))
	assert.ErrorIs(t, update(), inbox.ErrMore, "it is much")
	assert.Equal(t, []string{"x", "y", "z", "v"}, names())
	require.NoError(t, update())

	deliver(t, box)
	settleNextOf(t, box, orphan)
	require.NoError(t, update(), "one more is little")
	last := letters(t, box)[4]
	l, there, err := r.Letter(last.Letter)
	require.NoError(t, err)
	assert.True(t, there)
	assert.Nil(t, l.RequeuedAt)
	requeue(t, box, last)
	require.NoError(t, update())
	l, _, err = r.Letter(last.Letter)
	require.NoError(t, err)
	assert.NotNil(t, l.RequeuedAt, "the mark is found")

	echo(t, path, strings.TrimSuffix(line("half"), "\"}\n"))
	warnings, err = r.Read()
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "ends in the middle of line 7")
	echo(t, path, "\"}\n")
	assert.Equal(t, []string{"x", "y", "z", "v", last.EntryID, "half"}, names())

	// A file that an editor replaced, or wrote in place, is another one.
	write(t, path+".new", line("z")+line("y")+line("x")+line("v"))
	require.NoError(t, os.Rename(path+".new", path))
	assert.ErrorIs(t, update(), inbox.ErrMore)
	assert.Equal(t, []string{"z", "y", "x", "v"}, names())
	write(t, path, line("v")+line("y")+line("x")+line("w"))
	assert.ErrorIs(t, update(), inbox.ErrMore)
	assert.Equal(t, []string{"v", "y", "x", "w"}, names())
	require.NoError(t, os.Remove(path))
	require.NoError(t, update())
	_, there, err = r.Letter(last.Letter)
	require.NoError(t, err)
	assert.False(t, there)
}

// The count is that of the letters, whatever was added since.
func TestCountLetters(t *testing.T) {
	t.Parallel()
	box := newBox(t, "a\nb\nc\n")
	path := beside(box, ".dead-letter.jsonl")
	check := func() {
		t.Helper()
		counted, err := outcomes.CountLetters(box)
		require.NoError(t, err)
		want := map[inbox.Reason]int{}
		for _, l := range letters(t, box) {
			if l.Open() {
				want[l.Reason]++
			}
		}
		assert.Equal(t, want, counted.Open)
	}
	check()
	line := func(id, reason string) string {
		return fmt.Sprintf("{\"entry_id\":%q,\"raw_line\":%q,\"reason\":%q,\"dead_lettered_at\":\"2026-01-02T03:04:05Z\"}\n", id, strings.Repeat(id, 300<<10), reason)
	}
	write(t, path, line("x", "orphaned")+line("y", "failed")+line("z", "orphaned")+line("v", "rejected"))
	check()
	deliver(t, box)
	settleNextOf(t, box, orphan)
	check()
	all := letters(t, box)
	requeue(t, box, all[0])
	requeue(t, box, all[4])
	check()
	// A mark of an older release, and an editor's file, make it count anew.
	echo(t, path, fmt.Sprintf("{\"letter\":%q,\"requeued_at\":\"2026-01-02T03:04:05Z\"}\n", all[1].Letter))
	check()
	write(t, path+".new", line("z", "orphaned")+line("y", "failed")+line("z", "orphaned")+line("v", "failed")+line("u", "failed"))
	require.NoError(t, os.Rename(path+".new", path))
	check()
	write(t, path, line("v", "failed"))
	check()
	require.NoError(t, os.Remove(path))
	check()
}

// The letter of an entry that came from a stream is open, and counted there and not here. Metadata of that name alone
// says nothing.
func TestLettersOfAStreamAreNotCounted(t *testing.T) {
	t.Parallel()
	box := newBox(t, `{"prompt":"a","id":"a","nats":{"stream":"WORK","seq":1}}`+"\n"+`{"prompt":"b","id":"b","nats":"WORK"}`+"\n")
	for range 2 {
		deliver(t, box)
		settleNextOf(t, box, orphan)
	}
	path := beside(box, ".dead-letter.jsonl")
	for range 2 { // as heartbeat writes the lines, and in another order of members
		counted, err := outcomes.CountLetters(box)
		require.NoError(t, err)
		assert.Equal(t, map[inbox.Reason]int{inbox.ReasonOrphaned: 1}, counted.Open)
		var open []string
		_, err = outcomes.EachOpenLetter(box, func(l inbox.Letter) bool {
			open = append(open, l.ID)
			return true
		})

		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, open)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		write(t, path, strings.ReplaceAll(string(text), `{"entry_id"`, `{ "entry_id"`))
	}
}

// A letter that a person canceled, or whose id was answered since, is not open.
func TestOpenLetters(t *testing.T) {
	t.Parallel()
	entry := func(id string) string { return fmt.Sprintf("{\"id\":%q,\"prompt\":\"p\"}\n", id) }
	box := newBox(t, entry("x")+entry("y")+entry("z")+"c\nd\n")
	check := func(want map[inbox.Reason]int, names ...string) {
		t.Helper()
		counted, err := outcomes.CountLetters(box)
		require.NoError(t, err)
		for reason, n := range counted.Open {
			assert.Equal(t, want[reason], n, reason)
		}
		var open []string
		_, err = outcomes.EachOpenLetter(box, func(l inbox.Letter) bool {
			open = append(open, l.ID)
			return true
		})

		require.NoError(t, err)
		assert.Equal(t, names, open)
		is, err := outcomes.OpenLetters(box)
		require.NoError(t, err)
		for _, l := range letters(t, box) {
			assert.Equal(t, slices.Contains(names, l.ID), is(l.Letter), l.ID)
		}
	}
	for range 3 {
		deliver(t, box)
		settleNextOf(t, box, orphan)
	}
	cancel(t, box, "c")
	check(map[inbox.Reason]int{inbox.ReasonOrphaned: 3}, "x", "y", "z")
	deliver(t, box)
	acknowledge(t, box, "d")
	check(map[inbox.Reason]int{inbox.ReasonOrphaned: 3}, "x", "y", "z")
	echo(t, box.Path(), entry("y"))
	deliver(t, box)
	check(map[inbox.Reason]int{inbox.ReasonOrphaned: 3}, "x", "y", "z")
	acknowledge(t, box, "now")
	check(map[inbox.Reason]int{inbox.ReasonOrphaned: 2}, "x", "z")
	requeue(t, box, letters(t, box)[1])
	check(map[inbox.Reason]int{inbox.ReasonOrphaned: 2}, "x", "z")
	requeue(t, box, letters(t, box)[0])
	check(map[inbox.Reason]int{inbox.ReasonOrphaned: 1}, "z")
}

// Lines that others wrote may tell any time, in any zone.
func TestLettersWithTimesOfAnyYear(t *testing.T) {
	t.Parallel()
	box := newBox(t, "")
	for i, at := range []string{"0001-01-01T00:00:00Z", "1500-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-01-01T00:00:00+02:00", "9999-12-31T23:59:59Z"} {
		letter := fmt.Sprintf(`{"entry_id":"e%d","id":"i%[1]d","raw_line":"x","reason":"orphaned","dead_lettered_at":"1500-01-01T00:00:00Z"}`+"\n", i)
		path := beside(box, ".dead-letter.jsonl")
		write(t, path, letter)
		name := letters(t, box)[0].Letter
		for _, member := range []string{"requeued_at", "accepted_at"} {
			write(t, path, fmt.Sprintf(`{"letter":%q,%q:%q}`+"\n", name, member, at)+letter)
			l := letters(t, box)[0]
			got := l.RequeuedAt
			if member == "accepted_at" {
				got = l.AcceptedAt
			}
			require.NotNil(t, got, at)
			assert.Equal(t, at, got.Format(time.RFC3339Nano))
			n, err := outcomes.CountLetters(box)
			require.NoError(t, err)
			assert.Zero(t, n.All(), at)
		}
		write(t, path, letter)
		write(t, beside(box, ".results.jsonl"), fmt.Sprintf(`{"id":"i%d","acknowledged_at":"2026-01-01T00:00:00Z"}`+"\n", i))
		n, err := outcomes.CountLetters(box)
		require.NoError(t, err)
		assert.Zero(t, n.All(), "answered since")
	}
}
