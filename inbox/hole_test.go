package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// longLines returns lines of about a kilobyte each: `0 ...`, `1 ...`.
func longLines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%d %s\n", i, strings.Repeat("x", 1000))
	}
	return b.String()
}

// compact skips the test where the file system has no holes.
func compact(t testing.TB, box *inbox.Inbox) inbox.Compaction {
	t.Helper()
	c, err := box.Compact(context.Background())
	if errors.Is(err, inbox.ErrNoHoles) {
		t.Skip("no holes here")
	}
	require.NoError(t, err)
	return c
}

// numbers returns the first words of the texts.
func numbers(texts []string) (all []string) {
	for _, text := range texts {
		n, _, _ := strings.Cut(text, " ")
		all = append(all, n)
	}
	return all
}

// half is an inbox of 40 long lines with 20 answered and the next in flight.
func half(t testing.TB) *inbox.Inbox {
	t.Helper()
	box := newBox(t, longLines(0, 40))
	for range 21 {
		turn(t, box)
	}
	return box
}

func rest(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func space(t testing.TB, path string) int64 {
	t.Helper()
	f, err := disk.OpenRead(path)
	require.NoError(t, err)
	defer f.Close()
	return f.Info().Space
}

func TestCompact(t *testing.T) {
	t.Parallel()
	box := half(t)
	size, took, content := fileSize(t, box.Path()), space(t, box.Path()), read(t, box.Path())
	c := compact(t, box)
	assert.Equal(t, took-space(t, box.Path()), c.Freed)
	assert.GreaterOrEqual(t, c.Freed, int64(8<<10))
	assert.Equal(t, size, fileSize(t, box.Path()))
	assert.Equal(t, strings.Repeat("\x00", int(c.To))+content[c.To:], read(t, box.Path()))
	assert.Equal(t, byte('\n'), content[c.To-1], "whole lines")
	assert.Equal(t, rest(21, 40), numbers(drain(t, box)))
	assert.Len(t, results(t, box), 40)
}

// Compacting again finds nothing to do and touches nothing. After more answers it does.
func TestCompactAgain(t *testing.T) {
	for name, content := range map[string]string{
		"lines of a kilobyte": longLines(0, 40),
		"longer than a block": strings.ReplaceAll(longLines(0, 40), "xxxxxxxx", strings.Repeat("x", 80)),
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, content)
			for range 21 {
				turn(t, box)
			}
			first := compact(t, box)
			before := snapshot(t, box)
			var again inbox.Compaction
			_, read := spent(t, func() { again = compact(t, box) })
			assert.Equal(t, inbox.Compaction{To: first.To}, again)
			assert.Equal(t, before, snapshot(t, box))
			assert.Less(t, read, uint64(256<<10), "the hole is not read")
			for range 15 {
				turn(t, box)
			}
			more := compact(t, box)
			assert.Greater(t, more.To, first.To)
			assert.Positive(t, more.Freed)
			assert.Equal(t, rest(36, 40), numbers(drain(t, box)))
		})
	}
}

// If no block can be freed, nothing is zeroed: nobody could tell the zeros from a line.
func TestNothingToCompact(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		turns   int
	}{
		"empty":                   {"", 0},
		"nothing answered":        {longLines(0, 20), 1},
		"below one block":         {oldContent, 4},
		"below one block to free": {longLines(0, 8), 9},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, c.content)
			for range c.turns {
				turn(t, box)
			}
			before := snapshot(t, box)
			assert.Equal(t, inbox.Compaction{}, compact(t, box))
			after := snapshot(t, box)
			delete(after, ".inbox-lock")
			delete(before, ".inbox-lock")
			assert.Equal(t, before, after)
		})
	}
}

func TestCompactAMissingInbox(t *testing.T) {
	box := half(t)
	require.NoError(t, os.Remove(box.Path()))
	assert.Equal(t, inbox.Compaction{}, compact(t, box))
}

// An entry that waits to be delivered again stays, wherever it is.
func TestCompactKeepsWhatWasGivenBack(t *testing.T) {
	t.Parallel()
	box := half(t)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	compact(t, box)
	assert.Equal(t, rest(20, 40), numbers(drain(t, box)))
}

// A launcher may set the cursor back: compacted entries do not come again, and the others come whole.
func TestCursorSetBackAfterCompact(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(c inbox.Compaction, content string) int64{
		"to the start":      func(inbox.Compaction, string) int64 { return 0 },
		"into the hole":     func(inbox.Compaction, string) int64 { return 4096 },
		"amid a line of it": func(inbox.Compaction, string) int64 { return 1500 },
		"to its last line": func(c inbox.Compaction, content string) int64 {
			return int64(strings.LastIndex(content[:c.To-1], "\n")) + 1
		},
		"to its last byte":   func(c inbox.Compaction, _ string) int64 { return c.To - 1 },
		"to its end":         func(c inbox.Compaction, _ string) int64 { return c.To },
		"one byte behind it": func(c inbox.Compaction, _ string) int64 { return c.To + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			box := half(t)
			content := read(t, box.Path())
			acknowledge(t, box, "done")
			c := compact(t, box)
			write(t, beside(box, ".inbox-offset"), fmt.Sprint(back(c, content)))
			assert.Equal(t, rest(strings.Count(content[:c.To], "\n"), 40), numbers(drain(t, box)))
		})
	}
}

// A file that replaces a compacted inbox is read from its start, zeros and all, since nothing of it
// was settled.
func TestInboxReplacedAfterCompact(t *testing.T) {
	t.Parallel()
	box := half(t)
	acknowledge(t, box, "done")
	compact(t, box)
	write(t, box.Path(), longLines(50, 70))
	assert.Equal(t, rest(50, 70), numbers(drain(t, box)))
}

// noHoles makes the punch fail as on a file system without holes.
func noHoles(op disk.Op) error {
	if op.Kind == disk.OpPunch {
		return unix.EOPNOTSUPP
	}
	return nil
}

func TestCompactWithoutHoles(t *testing.T) {
	box := half(t)
	before := read(t, box.Path())
	stop := crash.Observe(t, noHoles)
	for range 2 {
		c, err := box.Compact(context.Background())
		require.ErrorIs(t, err, inbox.ErrNoHoles)
		assert.Zero(t, c)
	}
	stop()
	assert.Equal(t, before, read(t, box.Path()))
	assert.Equal(t, rest(21, 40), numbers(drain(t, box)))
}

// punching is an inbox whose compaction was killed, either before the hole was made or after.
func punching(t testing.TB, made bool) *inbox.Inbox {
	t.Helper()
	box := half(t)
	acknowledge(t, box, "done")
	n := 0
	stop := crash.Observe(t, func(op disk.Op) error {
		if op.Kind == disk.OpPunch {
			n++
		}
		if n > 0 && (op.Kind != disk.OpPunch || !made) {
			return unix.EIO // as if nothing more happened
		}
		return nil
	})
	_, err := box.Compact(context.Background())
	stop()
	require.ErrorIs(t, err, unix.EIO)
	require.Positive(t, n)
	return box
}

func TestKilledCompactionIsFinished(t *testing.T) {
	for _, made := range []bool{false, true} {
		t.Run(fmt.Sprint(made), func(t *testing.T) {
			box := punching(t, made)
			assert.Empty(t, in(t, box, func(*inbox.Tx) {}))
			assert.Equal(t, byte(0), read(t, box.Path())[0])
			assert.Zero(t, compact(t, box).Freed)
			assert.Equal(t, rest(21, 40), numbers(drain(t, box)))
		})
	}
}

// A disk that fails while a killed compaction is completed does not make the inbox look like another one.
func TestFinishingACompactionFails(t *testing.T) {
	for _, kind := range []disk.Kind{disk.OpPunch, disk.OpSync, disk.OpWrite} {
		t.Run(string(kind), func(t *testing.T) {
			box := punching(t, true)
			failed := false
			crash.Observe(t, func(op disk.Op) error {
				if op.Kind == kind && !failed {
					failed = true
					return unix.EIO
				}
				return nil
			})
			warnings := in(t, box, func(*inbox.Tx) {})
			require.True(t, failed)
			require.Len(t, warnings, 1)
			assert.Contains(t, warnings[0], "is freed later")
			assert.Equal(t, rest(21, 40), numbers(drain(t, box)))
		})
	}
}

// An inbox that was refilled between a kill and the next transaction is not the one to compact,
// even if it is the same file.
func TestInboxReplacedAmidCompaction(t *testing.T) {
	for name, replace := range map[string]func(t testing.TB, box *inbox.Inbox){
		"refilled": func(t testing.TB, box *inbox.Inbox) { write(t, box.Path(), longLines(50, 100)) },
		"refilled and the cursor reset": func(t testing.TB, box *inbox.Inbox) {
			write(t, box.Path(), longLines(50, 100))
			write(t, beside(box, ".inbox-offset"), "0")
		},
		"refilled and the cursor removed": func(t testing.TB, box *inbox.Inbox) {
			write(t, box.Path(), longLines(50, 100))
			require.NoError(t, os.Remove(beside(box, ".inbox-offset")))
		},
		"another file": func(t testing.TB, box *inbox.Inbox) {
			write(t, box.Path()+".new", longLines(50, 100))
			require.NoError(t, os.Rename(box.Path()+".new", box.Path()))
		},
		"shorter": func(t testing.TB, box *inbox.Inbox) {
			write(t, box.Path(), longLines(50, 53))
			require.NoError(t, os.WriteFile(box.Path(), []byte(longLines(50, 53)), 0o600))
		},
	} {
		for _, made := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", made), func(t *testing.T) {
				box := punching(t, made)
				replace(t, box)
				want := read(t, box.Path())
				in(t, box, func(*inbox.Tx) {})
				assert.Equal(t, want, read(t, box.Path()))
				assert.Equal(t, rest(50, 50+strings.Count(want, "\n")), numbers(drain(t, box)))
			})
		}
	}
}

// A view during a killed compaction sees the same inbox.
func TestViewAmidCompaction(t *testing.T) {
	box := punching(t, true)
	v, err := box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	assert.Empty(t, v.Replaced())
}
