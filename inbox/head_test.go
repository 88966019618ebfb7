package inbox_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// head returns the next entry, as a reader finds it.
func head(t testing.TB, box *inbox.Inbox) (h *inbox.Head) {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	h, err = v.Head()
	require.NoError(t, err)
	return h
}

// comes appends a line at a given time.
func comes(t testing.TB, box *inbox.Inbox, line string, at time.Time) {
	t.Helper()
	echo(t, box.Path(), line+"\n")
	require.NoError(t, os.Chtimes(box.Path(), at, at))
}

// A waiting entry is as old as the first commit that found it says, whatever is appended behind it.
func TestHead(t *testing.T) {
	t.Parallel()
	box := newBox(t, "")
	at := func(minute int) time.Time { return time.Date(2026, 3, 4, 9, minute, 0, 0, time.UTC) }
	is := func(since time.Time, noted bool) {
		t.Helper()
		h := head(t, box)
		require.NotNil(t, h)
		assert.Equal(t, since, h.Since.UTC())
		assert.Equal(t, noted, h.Noted)
	}
	commit := func() { box.NoteHead(t.Context()) } // like any other commit
	assert.Nil(t, head(t, box))
	comes(t, box, "one", at(1))
	is(at(1), false)
	comes(t, box, "two", at(2))
	is(at(2), false)
	commit()
	is(at(2), true)
	for minute := range 9 {
		comes(t, box, "more", at(10+minute))
		commit()
		is(at(2), true)
	}

	deliver(t, box)
	is(at(2), true)
	turn(t, box)
	is(at(10), true)
	for range 3 {
		turn(t, box)
	}
	is(at(18), true) // it came at 13, but not so many notes are kept
	settleNextOf(t, box, func(tx *inbox.Tx) error { return tx.GiveBack("", true) })
	is(at(12), true)
	turn(t, box)

	write(t, box.Path(), "another\n")
	require.NoError(t, os.Chtimes(box.Path(), at(40), at(40)))
	is(at(40), false)
	commit()
	is(at(40), true)
	write(t, box.Path(), `{"prompt":"x","sent_at":"2026-03-04T09:30:00Z","not_before":"2026-03-04T09:50:00Z"}`+"\n")
	is(at(50), true)
	write(t, box.Path(), strings.Repeat("x", 3<<20)+"\n")
	require.NoError(t, os.Chtimes(box.Path(), at(55), at(55)))
	is(at(55), false)
}
