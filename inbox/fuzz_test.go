package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// lineAt is one line of some content, as the queue should see it.
type lineAt struct {
	start, end int64
	raw        string
}

// split returns every line that is not blank.
func split(content []byte) (all []lineAt) {
	off := int64(0)
	for l := range bytes.Lines(content) {
		end := off + int64(len(l))
		raw := bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r"))
		zeros := len(raw) - len(bytes.TrimLeft(raw, "\x00"))
		raw, off = raw[zeros:], off+int64(zeros)
		if len(bytes.TrimSpace(bytes.TrimPrefix(raw, []byte(bom)))) > 0 {
			all = append(all, lineAt{off, end, string(raw)})
		}
		off = end
	}
	return all
}

// boundary reports whether a line of the content can begin at the offset.
func boundary(content []byte, off int64) bool {
	return off == 0 || off == int64(len(content)) || (off < int64(len(content)) && content[off-1] == '\n')
}

// FuzzNext drains an inbox of any bytes. Every line that is not blank is answered or set aside,
// once and in order, and the cursor never stands inside a line.
func FuzzNext(f *testing.F) {
	for _, s := range []string{
		oldContent, "", "\n\n", "a", "\"\"\n{\"prompt\":\"\"}\n", "a\r\nb\r\n \nc", "\x00\n\xff\xfe\n", "{\"prompt\":\"x\",\"id\":\"i\"}\n\"s\"\n",
		"\ufeff\"\"\n\u2028\n\u0085\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		want := split(content)
		if len(want) > 30 {
			t.Skip("it takes long and shows nothing new")
		}
		box := newBox(t, string(content))
		mark := still(t, box)
		tx := begin(t, box)
		last := int64(-1)
		for range len(want) + 1 {
			e, err := tx.Next(mark)
			if err != nil {
				require.ErrorIs(t, err, inbox.ErrEmpty)
			} else {
				require.Greater(t, e.Start, last)
				require.GreaterOrEqual(t, e.End, e.Start)
				last = e.Start
				_, err = tx.Deliver(e, inbox.Recipient{})
				require.NoError(t, err)
				require.NoError(t, tx.Acknowledge(e.Text))
			}
			require.NoError(t, tx.Commit())
			require.True(t, boundary(content, tx.Cursor()), "cursor %d", tx.Cursor())
		}
		_, err := tx.Next(mark)
		require.ErrorIs(t, err, inbox.ErrEmpty)
		assert.Equal(t, want, settled(t, box))
	})
}

// settled merges the results and the dead letters by offset. It checks each line's bytes by their hash.
func settled(t testing.TB, box *inbox.Inbox) (all []lineAt) {
	t.Helper()
	lines := map[string]string{}
	for _, l := range split([]byte(read(t, box.Path()))) {
		lines[sha256Hex(l.raw)] = l.raw
	}
	dead := deadLetters(t, box)
	for _, r := range results(t, box) {
		for len(dead) > 0 && dead[0].StartOffset < r.StartOffset {
			all = append(all, lineAt{dead[0].StartOffset, dead[0].EndOffset, lines[dead[0].EntryID]})
			dead = dead[1:]
		}
		all = append(all, lineAt{r.StartOffset, r.EndOffset, lines[r.EntryID]})
	}
	for _, d := range dead {
		all = append(all, lineAt{d.StartOffset, d.EndOffset, lines[d.EntryID]})
	}
	return all
}

// FuzzCursor puts any bytes into .inbox-offset: they are refused and left alone, or whole lines up
// to the last one are delivered.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{"0", "4", "5", " 8\n", "14", "15", "-1", "", "x", "9223372036854775807", "9223372036854775808", "1_0", "\x00"} {
		f.Add([]byte(oldContent), []byte(s))
	}
	f.Add([]byte("a\r\nb\n\n\nc"), []byte("2"))
	f.Fuzz(func(t *testing.T, content, cursor []byte) {
		want := split(content)
		if len(want) > 30 {
			t.Skip("it takes long and shows nothing new")
		}
		box := newBox(t, string(content))
		write(t, beside(box, ".inbox-offset"), string(cursor))
		tx, err := box.Begin(context.Background())
		if err != nil {
			require.ErrorIs(t, err, inbox.ErrCorrupt)
			assert.Equal(t, string(cursor), cursorFile(t, box))
			return
		}
		require.NoError(t, tx.Close())
		mark := still(t, box)
		in(t, box, func(tx *inbox.Tx) {
			for {
				e, err := tx.Next(mark)
				if err != nil {
					require.ErrorIs(t, err, inbox.ErrEmpty)
					return
				}
				_, err = tx.Deliver(e, inbox.Recipient{})
				require.NoError(t, err)
				require.NoError(t, tx.Acknowledge(""))
			}
		})
		got := settled(t, box)
		require.LessOrEqual(t, len(got), len(want))
		if len(got) > 0 {
			assert.Equal(t, want[len(want)-len(got):], got)
		}
	})
}

// FuzzInFlight puts any bytes into .in-flight: they are refused and left alone, or accepted as an
// entry that can be settled, and the queue continues.
func FuzzInFlight(f *testing.F) {
	for _, s := range corruptInFlight {
		f.Add([]byte(s))
	}
	f.Add([]byte(fiveMembers(0, 4, "one")))
	f.Add([]byte(fiveMembers(4, 8, "two")))
	f.Add([]byte(fiveMembers(2, 6, "two")))
	f.Add([]byte(fiveMembers(0, 4000, "\xff")))
	f.Add([]byte("{\"evidence\":{\n},\"failure\":{\n}," + fiveMembers(0, 4, "one")[1:]))
	f.Add([]byte(`{"detached":true,"unterminated":true,"attempt":7,"evidence":{"a":"b"},"failure":{"error":"x"},` + fiveMembers(0, 4, "one")[1:]))
	f.Fuzz(func(t *testing.T, content []byte) {
		box := newBox(t, oldContent)
		write(t, beside(box, ".in-flight"), string(content))
		tx, err := box.Begin(context.Background())
		if err != nil {
			assert.True(t, errors.Is(err, inbox.ErrCorrupt) || errors.Is(err, inbox.ErrOtherInbox), "%v", err)
			assert.Equal(t, string(content), read(t, beside(box, ".in-flight")))
			return
		}
		require.NotNil(t, tx.InFlight())
		want := *tx.InFlight()
		require.NoError(t, tx.Commit())
		require.NoError(t, tx.Close())
		in(t, box, func(tx *inbox.Tx) {
			require.NotNil(t, tx.InFlight(), "it is as it was taken up")
			assert.Equal(t, want.Text(), tx.InFlight().Text())
			assert.Equal(t, want.Attempt, tx.InFlight().Attempt)
			require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned))
		})
		require.Len(t, deadLetters(t, box), 1)
		for _, text := range drain(t, box) {
			assert.Contains(t, strings.Fields(oldContent), text, "no fragments")
		}
	})
}
