package inbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// noon is when everything happens to an inbox from newBox.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 123456789, time.UTC)

// newBox creates an inbox with this content in a directory of its own.
func newBox(t testing.TB, content string) *inbox.Inbox {
	t.Helper()
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	write(t, path, content)
	return open(t, path)
}

func open(t testing.TB, path string) *inbox.Inbox {
	t.Helper()
	box, err := inbox.Open(path, inbox.Options{
		LockWait: 5 * time.Minute, // the disk may be busy
		Now:      func() time.Time { return noon },
	})
	require.NoError(t, err)
	return box
}

// begin starts a transaction that ends uncommitted with the test, at the latest.
func begin(t testing.TB, box *inbox.Inbox) *inbox.Tx {
	t.Helper()
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tx.Close()) })
	return tx
}

// in runs f in a transaction, and commits it.
func in(t testing.TB, box *inbox.Inbox, f func(tx *inbox.Tx)) (warnings []string) {
	t.Helper()
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	f(tx)
	require.NoError(t, tx.Commit())
	return tx.Warnings()
}

// deliver puts the next entry in flight.
func deliver(t testing.TB, box *inbox.Inbox) (e inbox.Entry) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) {
		var err error
		e, err = tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
		require.NoError(t, err)
	})
	return e
}

// acknowledge answers the entry in flight.
func acknowledge(t testing.TB, box *inbox.Inbox, reply string) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge(reply)) })
}

// turn acknowledges the entry in flight and delivers the next one. It returns that text, or "" if none waits.
func turn(t testing.TB, box *inbox.Inbox) (text string) {
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

func drain(t testing.TB, box *inbox.Inbox) (texts []string) {
	t.Helper()
	for text := turn(t, box); text != ""; text = turn(t, box) {
		texts = append(texts, text)
	}
	return texts
}

// next returns the entry that would be delivered, and changes nothing.
func next(t testing.TB, box *inbox.Inbox) (inbox.Entry, error) {
	t.Helper()
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	return tx.Next(inbox.Mark{})
}

// beside returns the path of a file in the inbox's directory.
func beside(box *inbox.Inbox, name string) string {
	return filepath.Join(filepath.Dir(box.Path()), name)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// echo appends like `echo >>`, or like printf without a newline.
func echo(t testing.TB, path, content string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(content)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// linesOf reads a JSONL file into the type that documents it. Every line must be whole, with no
// member that the type lacks.
func linesOf[T any](t testing.TB, path string) (all []T) {
	t.Helper()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	require.True(t, len(b) == 0 || b[len(b)-1] == '\n', "%s ends amid a line: %q", path, b)
	for l := range bytes.Lines(b) {
		dec := json.NewDecoder(bytes.NewReader(l))
		dec.DisallowUnknownFields()
		var v T
		require.NoError(t, dec.Decode(&v), "%s: %q", path, l)
		all = append(all, v)
	}
	return all
}

func results(t testing.TB, box *inbox.Inbox) []inbox.Result {
	t.Helper()
	return linesOf[inbox.Result](t, box.ResultsPath())
}

func deadLetters(t testing.TB, box *inbox.Inbox) []inbox.DeadLetter {
	t.Helper()
	return linesOf[inbox.DeadLetter](t, box.DeadLetterPath())
}

func TestDrainInOrder(t *testing.T) {
	box := newBox(t, "one\n\"two\\nlines\"\n\n{\"prompt\":\"three\",\"id\":\"x\"}\r\n{\"other\":1}\n")
	assert.Equal(t, []string{"one", "two\nlines", "three", `{"other":1}`}, drain(t, box))
	assert.Empty(t, drain(t, box))
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	mkfifo(t, fifo)
	for name, c := range map[string]struct{ path, says string }{
		"no path":      {"", "the path is empty"},
		"directory":    {dir, "it is a directory"},
		"FIFO":         {fifo, "not a regular file"},
		"device":       {os.DevNull, "not a regular file"},
		"no directory": {filepath.Join(dir, "none", "inbox"), "make it first"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inbox.Open(c.path, inbox.Options{})
			assert.ErrorContains(t, err, c.says)
		})
	}
}

func TestMissingInboxIsEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later.jsonl")
	box := open(t, path)
	_, err := next(t, box)
	assert.ErrorIs(t, err, inbox.ErrEmpty)
	assert.NoFileExists(t, path)
	echo(t, path, "now\n")
	assert.Equal(t, []string{"now"}, drain(t, box))
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// cursorFile returns the content of .inbox-offset.
func cursorFile(t testing.TB, box *inbox.Inbox) string {
	t.Helper()
	return read(t, beside(box, ".inbox-offset"))
}

// inFlightFile returns the content of .in-flight.
func inFlightFile(t testing.TB, box *inbox.Inbox) (d inbox.Delivery) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(read(t, beside(box, ".in-flight"))), &d))
	return d
}
