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

// setTimes sets a file's times relative to now, because the result must not depend on the kernel's
// clock ticks.
func setTimes(t testing.TB, path string, access, change time.Duration) {
	t.Helper()
	now := time.Now()
	require.NoError(t, os.Chtimes(path, now.Add(access), now.Add(change)))
}

// rewrite is `> inbox` and later new content in the same file. Its times say that it was read
// before the write and not after.
func rewrite(t testing.TB, path, content string) {
	t.Helper()
	write(t, path, content)
	setTimes(t, path, -time.Hour, time.Hour)
}

// replace moves a new file over the inbox: the kernel gives it equal atime and mtime.
func replace(t testing.TB, path, content string) {
	t.Helper()
	write(t, path+".new", content)
	setTimes(t, path+".new", time.Hour, time.Hour)
	require.NoError(t, os.Rename(path+".new", path))
}

// readLater sets only the atime, as a reader does.
func readLater(t testing.TB, path string) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(path, info.ModTime().Add(time.Minute), info.ModTime()))
}

const oldContent = "one\ntwo\nthree\n"

// After three answers the inbox is another file or has other content. It is read from its start,
// once, with one warning.
func TestReplacedInboxIsReadFromItsStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t testing.TB, path string)
		want   []string
	}{
		"shorter": {
			func(t testing.TB, path string) { rewrite(t, path, "new\n") }, []string{"new"},
		},
		"longer": {
			func(t testing.TB, path string) { rewrite(t, path, strings.Repeat("new\n", 9)) }, strings.Fields(strings.Repeat("new ", 9)),
		},
		"as long": {
			func(t testing.TB, path string) { rewrite(t, path, "uno\ndos\ntress\n") }, []string{"uno", "dos", "tress"},
		},
		"cursor amid a line": {
			func(t testing.TB, path string) { rewrite(t, path, "one long line, longer than the old file\n") },
			[]string{"one long line, longer than the old file"},
		},
		"same up to the last line": {
			func(t testing.TB, path string) { rewrite(t, path, "one\ntwo\nTHREE\nfour\n") }, []string{"one", "two", "THREE", "four"},
		},
		"same last line": {
			func(t testing.TB, path string) { rewrite(t, path, "uno\ndos\nthree\nfour\n") }, []string{"uno", "dos", "three", "four"},
		},
		"the same bytes again": {
			func(t testing.TB, path string) { rewrite(t, path, oldContent) }, []string{"one", "two", "three"},
		},
		"the same bytes again, the clock set back": {
			func(t testing.TB, path string) {
				write(t, path, oldContent)
				setTimes(t, path, 0, -time.Hour)
			}, []string{"one", "two", "three"},
		},
		"another file": {
			func(t testing.TB, path string) { replace(t, path, "new\n") }, []string{"new"},
		},
		"another file with the same bytes": {
			func(t testing.TB, path string) { replace(t, path, oldContent) }, []string{"one", "two", "three"},
		},
		"removed and made again with the same bytes": {
			func(t testing.TB, path string) {
				// The old file is kept under another name, so that the new one has another inode.
				require.NoError(t, os.Rename(path, path+".old"))
				write(t, path, oldContent)
				setTimes(t, path, time.Hour, time.Hour)
			}, []string{"one", "two", "three"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			drain(t, box)
			c.change(t, box.Path())
			tx := begin(t, box)
			assert.Len(t, tx.Warnings(), 1)
			require.NoError(t, tx.Close())
			assert.Equal(t, c.want, drain(t, box))
			assert.Empty(t, in(t, box, func(*inbox.Tx) {}), "the warning comes once")
		})
	}
}

// A file that only looks like another one is not read again.
func TestSameInboxIsNotReadAgain(t *testing.T) {
	for name, change := range map[string]func(t testing.TB, path string){
		"nothing":          func(testing.TB, string) {},
		"touched":          func(t testing.TB, path string) { setTimes(t, path, time.Hour, time.Hour) },
		"read":             readLater,
		"other mode":       func(t testing.TB, path string) { require.NoError(t, os.Chmod(path, 0o640)) },
		"blank lines more": func(t testing.TB, path string) { echo(t, path, "\n\r\n  \n") },
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			drain(t, box)
			change(t, box.Path())
			assert.Empty(t, in(t, box, func(*inbox.Tx) {}))
			readLater(t, box.Path())
			assert.Empty(t, in(t, box, func(*inbox.Tx) {}))
			echo(t, box.Path(), "four\n")
			assert.Equal(t, []string{"four"}, drain(t, box))
		})
	}
}

// A touch stays a touch, even if reading the file later changes one of its times. It does not
// matter whether the first transaction to see it had anything to commit.
func TestTouchedThenRead(t *testing.T) {
	for name, look := range map[string]func(t testing.TB, box *inbox.Inbox){
		"committed": func(t testing.TB, box *inbox.Inbox) { in(t, box, func(*inbox.Tx) {}) },
		"closed": func(t testing.TB, box *inbox.Inbox) {
			_, err := next(t, box)
			require.ErrorIs(t, err, inbox.ErrEmpty)
		},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			drain(t, box)
			setTimes(t, box.Path(), time.Hour, time.Hour)
			look(t, box)
			readLater(t, box.Path())
			assert.Empty(t, in(t, box, func(*inbox.Tx) {}))
			assert.Empty(t, drain(t, box))
		})
	}
}

// After `> inbox` alone nothing waits, and later lines are read.
func TestTruncatedInbox(t *testing.T) {
	box := newBox(t, oldContent)
	drain(t, box)
	require.NoError(t, os.Truncate(box.Path(), 0))
	assert.Len(t, in(t, box, func(*inbox.Tx) {}), 1)
	assert.Empty(t, drain(t, box))
	assert.Equal(t, "0", cursorFile(t, box))
	echo(t, box.Path(), "two\n")
	assert.Equal(t, []string{"two"}, drain(t, box))
}

func TestRemovedInbox(t *testing.T) {
	box := newBox(t, oldContent)
	drain(t, box)
	require.NoError(t, os.Remove(box.Path()))
	assert.Empty(t, in(t, box, func(*inbox.Tx) {}), "it may come back")
	assert.Empty(t, drain(t, box))
	write(t, box.Path(), oldContent)
	assert.Len(t, in(t, box, func(*inbox.Tx) {}), 1)
	assert.Equal(t, []string{"one", "two", "three"}, drain(t, box))
}

// If the file is rewritten while entries wait, those in the new file wait.
func TestRewrittenHalfway(t *testing.T) {
	for name, content := range map[string]string{
		"other lines": "uno\ndos\ntres\n",
		"same lines":  oldContent,
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			turn(t, box)
			acknowledge(t, box, "reply")
			rewrite(t, box.Path(), content)
			assert.Equal(t, strings.Fields(content), drain(t, box))
		})
	}
}

// The anchor of a long line is the whole line.
func TestReplacedByALongLineAlike(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	box := newBox(t, "a"+long+"\n")
	drain(t, box)
	rewrite(t, box.Path(), "b"+long+"\nnext\n")
	assert.Equal(t, []string{"b" + long, "next"}, drain(t, box))
}

// A cursor inside a line, whoever set it, delivers no fragment.
func TestCursorAmidALine(t *testing.T) {
	t.Parallel()
	for cursor, want := range map[string][]string{
		"0":                   {"one", "two", "three"},
		"1":                   {"one", "two", "three"},
		"3":                   {"two", "three"},
		"4":                   {"two", "three"},
		"5":                   {"one", "two", "three"},
		"13":                  nil,
		"14":                  nil,
		"15":                  {"one", "two", "three"},
		"9223372036854775807": {"one", "two", "three"},
	} {
		t.Run(cursor, func(t *testing.T) {
			box := newBox(t, oldContent)
			write(t, beside(box, ".inbox-offset"), cursor)
			assert.Equal(t, want, drain(t, box))
		})
	}
}
