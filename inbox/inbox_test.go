package inbox_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// newBox is an inbox in a directory of its own, with these bytes in it.
func newBox(t *testing.T, content string) *inbox.Inbox {
	t.Helper()
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return open(t, path)
}

func open(t *testing.T, path string) *inbox.Inbox {
	t.Helper()
	box, err := inbox.Open(path, inbox.Options{LockWait: 10 * time.Second})
	require.NoError(t, err)
	return box
}

// in runs f in a transaction, and commits it.
func in(t *testing.T, box *inbox.Inbox, f func(tx *inbox.Tx)) (warnings []string) {
	t.Helper()
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	f(tx)
	require.NoError(t, tx.Commit())
	return tx.Warnings()
}

// turn acknowledges what is in flight, and delivers the next entry: it returns
// its text, or nothing when none waits.
func turn(t *testing.T, box *inbox.Inbox) (text string) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) {
		if d := tx.InFlight(); d != nil {
			require.NoError(t, tx.Acknowledge("reply to "+d.Text()))
		}
		e, err := tx.Next(inbox.Mark{})
		if err != nil {
			require.ErrorIs(t, err, inbox.ErrEmpty)
			return
		}
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
		require.NoError(t, err)
		text = e.Text
	})
	return text
}

func drain(t *testing.T, box *inbox.Inbox) (texts []string) {
	t.Helper()
	for text := turn(t, box); text != ""; text = turn(t, box) {
		texts = append(texts, text)
	}
	return texts
}

func TestDrainInOrder(t *testing.T) {
	box := newBox(t, "one\n\"two\\nlines\"\n\n{\"prompt\":\"three\",\"id\":\"x\"}\r\n{\"other\":1}\n")
	assert.Equal(t, []string{"one", "two\nlines", "three", `{"other":1}`}, drain(t, box))
	assert.Empty(t, drain(t, box))
}
