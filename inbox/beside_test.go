package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// appendings calls before ahead of each call that appends to the inbox. It calls behind ahead of
// the next write to the middle of the inbox, when the text from in between is already there.
func appendings(t testing.TB, box *inbox.Inbox, before, behind func()) {
	t.Helper()
	stop := crash.Observe(t, besideAppends(box.Path(), before, behind))
	t.Cleanup(stop)
}

func besideAppends(path string, before, behind func()) disk.Observer {
	busy := false
	return func(op disk.Op) error {
		if op.Kind != disk.OpWrite || op.Path != path || busy {
			return nil
		}
		busy = true
		defer func() { busy = false }()
		if op.Offset < 0 {
			before()
		} else {
			behind()
		}
		return nil
	}
}

// A producer's line that arrives in parts stays one line, whatever is appended between the parts,
// and what is appended is a separate entry.
func TestAppendAmidARawLine(t *testing.T) {
	for name, c := range map[string]struct {
		before, behind, after string
		raw                   []string
	}{
		"text, newline later":           {"raw", "", "\n", []string{"raw"}},
		"text, newline at once":         {"raw", "\n", "", []string{"raw"}},
		"half and half":                 {"ra", "", "w\n", []string{"raw"}},
		"half and half at once":         {"ra", "w\n", "", []string{"raw"}},
		"in three parts":                {"r", "a", "w\n", []string{"raw"}},
		"a line, and half of another":   {"one\ntw", "", "o\n", []string{"one", "two"}},
		"half, rest and another":        {"on", "e\nt", "wo\n", []string{"one", "two"}},
		"a whole line":                  {"raw\n", "", "", []string{"raw"}},
		"a newline":                     {"\n", "", "", nil},
		"a CRLF in two":                 {"raw\r", "", "\n", []string{"raw"}},
		"half of an envelope":           {`{"prompt":`, "", "\"raw\"}\n", []string{"raw"}},
		"a line that never ends":        {"raw", "", "", []string{"raw"}},
		"a long half":                   {strings.Repeat("x", 1<<20), "", "y\n", []string{strings.Repeat("x", 1<<20) + "y"}},
		"a half behind a long one":      {strings.Repeat("x", 1<<20) + "\nra", "", "w\n", []string{strings.Repeat("x", 1<<20), "raw"}},
		"half of what ends in a BOM":    {"\ufeffra", "", "w\n", []string{"raw"}},
		"zeros, which a sparse file is": {"\x00\x00", "", "raw\n", []string{"raw"}},
	} {
		for how, do := range map[string]func(t testing.TB, box *inbox.Inbox) []string{
			"send": func(t testing.TB, box *inbox.Inbox) []string {
				r := send(t, box, inbox.Message{ID: "job", Text: "ours"})
				assert.Contains(t, read(t, box.Path())[r.Start:r.End], `{"id":"job","prompt":"ours"`)
				assert.Equal(t, "\n", read(t, box.Path())[r.End-1:r.End])
				return []string{"ours"}
			},
			"batch": func(t testing.TB, box *inbox.Inbox) []string {
				for i, r := range sendAll(t, box, numbered(3)...) {
					assert.Contains(t, read(t, box.Path())[r.Start:r.End], numbered(3)[i].Text)
				}
				return []string{numbered(3)[0].Text, numbered(3)[1].Text, numbered(3)[2].Text}
			},
			"requeue": func(t testing.TB, box *inbox.Inbox) []string {
				requeue(t, box, letters(t, box)[0])
				return []string{"dead"}
			},
			"promotion": func(t testing.TB, box *inbox.Inbox) []string {
				write(t, box.ScheduledPath(), staged("a", noon.Add(-time.Hour))+"\n")
				in(t, box, func(*inbox.Tx) {})
				return []string{"text of a"}
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				box := deadBox(t, "dead\n")
				once := sync.OnceFunc(func() { echo(t, box.Path(), c.before) })
				rest := sync.OnceFunc(func() { echo(t, box.Path(), c.behind) })
				appendings(t, box, once, rest)
				ours := do(t, box)
				rest()
				echo(t, box.Path(), c.after)
				assert.ElementsMatch(t, append(ours, c.raw...), drainStill(t, box))
				assert.Len(t, letters(t, box), 1)
			})
		}
	}
}

// drainStill is drain for a last line that may lack its newline.
func drainStill(t testing.TB, box *inbox.Inbox) (texts []string) {
	t.Helper()
	for {
		mark := still(t, box)
		text, err := nextAt(t, box, mark)
		if errors.Is(err, inbox.ErrEmpty) {
			return texts
		}
		require.NoError(t, err)
		texts = append(texts, text)
		in(t, box, func(tx *inbox.Tx) {
			e, err := tx.Next(mark)
			require.NoError(t, err)
			_, err = tx.Deliver(e, inbox.Recipient{})
			require.NoError(t, err)
			require.NoError(t, tx.Acknowledge("done"))
		})
	}
}

// A line that was taken for whole, or was already delivered, stays where it is, though its writer
// goes on. A sentence explains the result.
func TestAppendAmidADeliveredLine(t *testing.T) {
	box := newBox(t, "half")
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(still(t, box))
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
	})
	appendings(t, box, sync.OnceFunc(func() { echo(t, box.Path(), " and") }), func() {})
	r := send(t, box, inbox.Message{Text: "ours"})
	assert.Contains(t, strings.Join(r.Warnings, " "), "write each line with one call")
	assert.Equal(t, "half", read(t, box.Path())[:4])
	echo(t, box.Path(), " half\n")
	in(t, box, func(tx *inbox.Tx) {
		require.Equal(t, "half", tx.InFlight().Text())
		require.NoError(t, tx.Acknowledge("done"))
	})
	assert.Contains(t, drain(t, box), "ours")
}

// A part that is too long to move is cut off, with a sentence. The appended text is still a separate entry.
func TestAppendAmidAVeryLongRawLine(t *testing.T) {
	box := newBox(t, "one\n")
	appendings(t, box, sync.OnceFunc(func() { echo(t, box.Path(), strings.Repeat("x", 5<<20)) }), func() {})
	r := send(t, box, inbox.Message{Text: "ours"})
	assert.Contains(t, strings.Join(r.Warnings, " "), "write each line with one call")
	assert.Contains(t, read(t, box.Path())[r.Start:r.End], "ours")
	got := drain(t, box)
	require.Len(t, got, 3)
	assert.Equal(t, "ours", got[2])
}

// sendBeside appends an entry while somebody writes a line in parts: one part before each call that
// appends, one before each that repairs, and the rest at the end.
func sendBeside(box *inbox.Inbox) error {
	raw := func(text string) {
		f, _, err := disk.OpenAppend(box.Path())
		if err == nil {
			_, err = f.Append([]byte(text))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			panic(err)
		}
	}
	before := sync.OnceFunc(func() { raw("raw ha") })
	behind := sync.OnceFunc(func() { raw("lf") })
	counted := disk.TestOnlyObserver
	beside := besideAppends(box.Path(), before, behind)
	disk.TestOnlyObserver = func(op disk.Op) error {
		if err := beside(op); err != nil {
			return err
		}
		if counted != nil {
			return counted(op)
		}
		return nil
	}
	_, err := box.AppendAll(context.Background(), []inbox.Message{{ID: "a", Text: "x"}, {ID: "b", Text: "y"}}, 0)
	return err
}

// After a kill or a power loss at any call while a producer writes its line, the sent entry is
// there once, and no part of it is glued to the producer's line.
func TestAppendAmidARawLineAtEveryCall(t *testing.T) {
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) { write(t, filepath.Join(dir, "inbox.jsonl"), "one\n") },
		Run: func(dir string) crash.Command {
			return crash.Command{Name: "beside", Args: []string{filepath.Join(dir, "inbox.jsonl")}}
		},
	}
	check := func(t *testing.T, c crash.Crash) {
		box := open(t, filepath.Join(c.Dir, "inbox.jsonl"))
		in(t, box, func(*inbox.Tx) {})
		before := read(t, box.Path())
		if strings.Contains(before, "raw ha") {
			if strings.Contains(before, "raw half") {
				echo(t, box.Path(), " line\n")
			} else if strings.HasSuffix(before, "raw ha") {
				echo(t, box.Path(), "lf line\n")
			}
		}
		for _, m := range []inbox.Message{{ID: "a", Text: "x"}, {ID: "b", Text: "y"}} {
			send(t, box, m) // like a sender who does not know whether it happened
		}
		got := drainStill(t, box)
		if strings.HasSuffix(t.Name(), "torn") { // whichever call that was
			for _, text := range got {
				assert.NotContains(t, text, `{"id"`)
			}
		} else {
			assert.Subset(t, []string{"one", "raw half line", "x", "y"}, got)
		}
		texts := map[string]int{}
		for _, r := range results(t, box) {
			texts[r.ID]++
		}
		assert.Equal(t, 1, texts["a"])
		assert.Equal(t, 1, texts["b"])
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("no space", func(t *testing.T) { s.EveryFail(t, unix.ENOSPC, check) })
	t.Run("power loss", func(t *testing.T) {
		s.EveryPowerLoss(t, 1, crash.OnlySynced, func(t *testing.T, c crash.Crash) {
			reboot(t, "after the power loss")
			check(t, c)
		})
	})
}

// Senders, requeueing and promotion run beside producers that write each line in two calls: nothing
// is lost or torn.
func TestConcurrentRawWritersInParts(t *testing.T) {
	t.Parallel()
	const writers, senders, each = 4, 4, 30
	box := newBox(t, "")
	var turns sync.Mutex // one line at a time: two such producers tear each other's lines
	writeParts := func(text string) (err error) {
		turns.Lock()
		defer turns.Unlock()
		f, err := os.OpenFile(box.Path(), os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		for _, part := range []string{text[:len(text)/2], text[len(text)/2:], "\n"} {
			if _, err := f.WriteString(part); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	}
	var want []string
	for i := range writers + senders {
		for n := range each {
			want = append(want, fmt.Sprintf("line %d of writer %d", n, i))
		}
	}
	require.NoError(t, all(writers+senders, func(i int) error {
		for n := range each {
			text := want[i*each+n]
			if i < writers {
				if err := writeParts(text); err != nil {
					return err
				}
			} else if _, err := box.Append(context.Background(), inbox.Message{Text: text}, time.Minute); err != nil {
				return err
			}
		}
		return nil
	}))
	assert.ElementsMatch(t, want, drain(t, box))
}

// An edited entry belongs to the person who edited it. The sent one is appended again if a kill
// left open whether it was ever there.
func TestEditedLineIsLeftAlone(t *testing.T) {
	box := newBox(t, "one\n")
	send(t, box, inbox.Message{ID: "a-name-that-is-longer-than-32-bytes", Text: "fix the typo"})
	write(t, box.Path(), strings.Replace(read(t, box.Path()), "the typo", "the test", 1))
	forget(t, box)
	assert.Subset(t, drain(t, box), []string{"one", "fix the test"})
	assert.Empty(t, deadLetters(t, box))
}

// An append-only inbox (chattr +a) is only appended to: nothing is moved, and the sent text is a
// separate entry.
func TestAppendOnlyInboxAmidARawLine(t *testing.T) {
	box := newBox(t, "one\n")
	half := besideAppends(box.Path(), sync.OnceFunc(func() { echo(t, box.Path(), "ha") }), func() {})
	crash.Observe(t, func(op disk.Op) error {
		if op.Kind == disk.OpWrite && op.Path == box.Path() && op.Offset >= 0 {
			return unix.EPERM
		}
		return half(op)
	})
	r := send(t, box, inbox.Message{ID: "job", Text: "ours"})
	assert.Contains(t, strings.Join(r.Warnings, " "), "write each line with one call")
	got := drainStill(t, box)
	assert.Equal(t, "one", got[0])
	assert.Equal(t, "ours", got[len(got)-1])
}

// Blank lines are not counted, delivered, answered or set aside.
func TestBlankLinesCostNothing(t *testing.T) {
	box := newBox(t, "\n\r\none\n\n \n\ntwo\n\n")
	assert.EqualValues(t, 2, backlog(t, box).Entries)
	waiting, err := viewOf(t, box).Next(9)
	require.NoError(t, err)
	assert.Len(t, waiting, 2)
	assert.Equal(t, []string{"one", "two"}, drain(t, box))
	assert.EqualValues(t, 2, totals(t, box).Answered)
	assert.EqualValues(t, 2, totals(t, box).Delivered)
	assert.Len(t, results(t, box), 2)
	assert.Empty(t, deadLetters(t, box))
	assert.Zero(t, backlog(t, box).Entries)
	assert.Empty(t, in(t, box, func(*inbox.Tx) {}))
}
