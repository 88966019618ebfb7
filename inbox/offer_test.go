package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// Only the entry that this very transaction found to be next can be delivered: others may be
// settled by now, or never existed.
func TestDeliverRefusesOtherEntries(t *testing.T) {
	box := newBox(t, "one\ntwo\n")
	next := func(tx *inbox.Tx) inbox.Entry {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		return e
	}
	deliverNext := func(tx *inbox.Tx) inbox.Entry {
		e := next(tx)
		_, err := tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
		return e
	}
	for name, entry := range map[string]func(tx *inbox.Tx) inbox.Entry{
		"empty": func(*inbox.Tx) inbox.Entry { return inbox.Entry{} },
		"made up": func(tx *inbox.Tx) inbox.Entry {
			e := next(tx)
			return inbox.Entry{EntryID: e.EntryID, Text: e.Text, Start: e.Start, End: e.End, Attempt: 1}
		},
		"of an earlier transaction": func(*inbox.Tx) (e inbox.Entry) {
			in(t, newBox(t, "one\ntwo\n"), func(tx *inbox.Tx) { e = next(tx) })
			return e
		},
		"of a view": func(*inbox.Tx) inbox.Entry {
			v, err := box.View()
			require.NoError(t, err)
			waiting, err := v.Next(1)
			require.NoError(t, err)
			require.NoError(t, v.Close())
			return waiting[0].Entry
		},
		"from before another look": func(tx *inbox.Tx) inbox.Entry {
			e := next(tx)
			next(tx)
			return e
		},
		"given back": func(tx *inbox.Tx) inbox.Entry {
			e := deliverNext(tx)
			require.NoError(t, tx.GiveBack("", true))
			return e
		},
		"answered": func(tx *inbox.Tx) inbox.Entry {
			e := deliverNext(tx)
			require.NoError(t, tx.Acknowledge("done"))
			require.NoError(t, tx.Commit())
			return e
		},
	} {
		t.Run(name, func(t *testing.T) {
			box = newBox(t, "one\ntwo\n")
			in(t, box, func(tx *inbox.Tx) {
				e := entry(tx)
				_, err := tx.Deliver(e, inbox.Recipient{})
				require.ErrorContains(t, err, "call Next")
				assert.Nil(t, tx.InFlight())
				deliverNext(tx)
			})
		})
	}
}

// An entry that Next returned can be delivered after a commit of something else.
func TestDeliverBehindACommit(t *testing.T) {
	box := newBox(t, "one\n")
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Holds().Pause("x", nil)
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		_, err = tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
	})
}

const bom = "\ufeff"

// A byte order mark is not delivered, but belongs to the line whose hash is the entry's id.
func TestByteOrderMark(t *testing.T) {
	for name, c := range map[string]struct{ content, text, id string }{
		"text":     {"fix it", "fix it", ""},
		"envelope": {`{"id":"job","prompt":"fix it"}`, "fix it", "job"},
		"string":   {`"fix it"`, "fix it", ""},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, bom+c.content+"\r\n")
			e := deliver(t, box)
			assert.Equal(t, c.text, e.Text)
			assert.Equal(t, c.id, e.ID)
			assert.Zero(t, e.Start)
			assert.Equal(t, sha256Hex(bom+c.content), e.EntryID)
			assert.Equal(t, bom+c.content, e.Raw().Text)
			in(t, box, func(tx *inbox.Tx) {
				assert.Equal(t, c.text, tx.InFlight().Text())
				require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned))
			})
			requeue(t, box, letters(t, box)[0])
			assert.Equal(t, c.text, deliver(t, box).Text)
		})
	}
}

// A byte order mark alone is no entry.
func TestByteOrderMarkAlone(t *testing.T) {
	for _, content := range []string{bom, bom + "\n", bom + " \r\n\n"} {
		box := newBox(t, content)
		_, err := next(t, box)
		require.ErrorIs(t, err, inbox.ErrEmpty, "%q", content)
		assert.Zero(t, backlog(t, box).Entries)
		send(t, box, inbox.Message{Text: "x"})
		assert.Equal(t, []string{"x"}, drain(t, box))
		assert.Empty(t, deadLetters(t, box))
	}
}

func TestByteOrderMarkOfABatch(t *testing.T) {
	m, err := inbox.ParseMessage([]byte(bom + `{"prompt":"x"}`))
	require.NoError(t, err)
	assert.Equal(t, "x", m.Text)
}
