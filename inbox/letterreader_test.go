package inbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// With the lock only what came since is read.
func TestLetterReader(t *testing.T) {
	box := newBox(t, "a\nb\nc\n")
	path := beside(box, ".dead-letter.jsonl")
	line := func(id string) string {
		return fmt.Sprintf("{\"entry_id\":%q,\"raw_line\":%q,\"reason\":\"orphaned\"}\n", id, strings.Repeat(id, 300<<10))
	}
	r := box.LetterReader()
	all, warnings, err := r.Read()
	require.NoError(t, err)
	assert.Empty(t, all)
	assert.Empty(t, warnings)

	update := func() error {
		tx, err := box.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Close()) }()
		return r.Update(tx)
	}
	names := func() (of []string) {
		t.Helper()
		all, warnings, err := r.Read()
		require.NoError(t, err)
		assert.Empty(t, warnings)
		for _, l := range all {
			of = append(of, l.EntryID)
		}
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
	l, there := r.Letter(last.Letter)
	assert.True(t, there)
	assert.Nil(t, l.RequeuedAt)
	requeue(t, box, last)
	require.NoError(t, update())
	l, _ = r.Letter(last.Letter)
	assert.NotNil(t, l.RequeuedAt, "the mark is found")

	echo(t, path, strings.TrimSuffix(line("half"), "\"}\n"))
	_, warnings, err = r.Read()
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "ends in the middle of line 7")
	echo(t, path, "\"}\n")
	assert.Equal(t, []string{"x", "y", "z", "v", last.EntryID, "half"}, names())

	// An editor's file is another one, and one that was written in place as well.
	write(t, path+".new", line("z")+line("y")+line("x")+line("v"))
	require.NoError(t, os.Rename(path+".new", path))
	assert.ErrorIs(t, update(), inbox.ErrMore)
	assert.Equal(t, []string{"z", "y", "x", "v"}, names())
	write(t, path, line("v")+line("y")+line("x")+line("w"))
	assert.ErrorIs(t, update(), inbox.ErrMore)
	assert.Equal(t, []string{"v", "y", "x", "w"}, names())
	require.NoError(t, os.Remove(path))
	require.NoError(t, update())
	_, there = r.Letter(last.Letter)
	assert.False(t, there)
}
