package inbox_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// history takes an inbox through a few commits. It returns the final files, and every state that
// was ever committed.
func history(t testing.TB) (box *inbox.Inbox, last files, committed map[view]bool) {
	t.Helper()
	box = newBox(t, "one\n\"\"\ntwo\nthree\n")
	committed = map[view]bool{{Next: "one"}: true}
	for _, settle := range []func(*inbox.Tx) error{
		func(tx *inbox.Tx) error { return tx.Acknowledge("reply\n") },
		func(tx *inbox.Tx) error { return tx.GiveBack("", true) },
		func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) },
		nil,
	} {
		deliver(t, box)
		v, err := look(t, box)
		require.NoError(t, err)
		committed[v] = true
		if settle == nil {
			break
		}
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, settle(tx)) })
		v, err = look(t, box)
		require.NoError(t, err)
		committed[v] = true
	}
	return box, snapshot(t, box), committed
}

// FuzzJournal changes one byte of a journal and appends any bytes, as failing storage might. The
// queue refuses the journal, or is in a state that was once committed.
func FuzzJournal(f *testing.F) {
	box, last, committed := history(f)
	j := written(last[journal])
	f.Add([]byte(nil), 0, byte(0))
	f.Add([]byte("garbage\n"), 20, byte(1))
	f.Add([]byte("\x00\n\x00"), len(j)-1, byte('\n'))
	f.Add([]byte("0123456789abcdef {}\n"), len(j)-100, byte(0x80))
	f.Add([]byte(strings.Repeat("\n", 5000)), 0, byte(0xff))
	for i, c := range j {
		if c == '\n' {
			f.Add([]byte(nil), i, byte('\n'))
			f.Add([]byte(nil), i-1, byte(1))
		}
	}
	f.Fuzz(func(t *testing.T, behind []byte, at int, flip byte) {
		if bytes.Contains(behind, []byte(`"seq"`)) {
			t.Skip("a record of some other journal, which storage does not make up")
		}
		spoilt := []byte(j)
		spoilt[uint(at)%uint(len(spoilt))] ^= flip
		restore(t, box, last) // in place: the inbox is also recognised by its inode
		write(t, beside(box, journal), string(spoilt)+string(behind))
		before := snapshot(t, box)
		v, err := look(t, box)
		if err != nil {
			require.ErrorIs(t, err, inbox.ErrCorrupt)
			assert.Equal(t, before, snapshot(t, box))
			return
		}
		assert.True(t, committed[v], "%+v", v)
		// The queue continues from there, and new commits last.
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Start(1, nil)) })
		again, err := look(t, box)
		require.NoError(t, err)
		assert.Equal(t, v, again)
	})
}

// FuzzJournalAlone takes any bytes for a journal, in a queue without other state: they are refused,
// or mean nothing.
func FuzzJournalAlone(f *testing.F) {
	for _, s := range []string{"", "\n", "\n\n", "text", "0123456789abcdef {}\n", "\x00", "a\nb\nc"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		box := newBox(t, oldContent)
		write(t, beside(box, journal), string(content))
		tx, err := box.Begin(context.Background())
		if err != nil {
			require.ErrorIs(t, err, inbox.ErrCorrupt)
			assert.Equal(t, string(content), read(t, beside(box, journal)))
			return
		}
		require.NoError(t, tx.Close())
		assert.Equal(t, []string{"one", "two", "three"}, drain(t, box))
	})
}
