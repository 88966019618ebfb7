package recover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

const content = "one\n{\"prompt\":\"two\",\"id\":\"2\"}\nthree\n"

// Offsets of the entries in content.
const (
	endOne           = 4
	startTwo, endTwo = 4, 30
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func newBox(t testing.TB) *inbox.Inbox {
	t.Helper()
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	require.Len(t, strings.SplitAfter(content, "\n")[1], endTwo-startTwo)
	box, err := inbox.Open(path, inbox.Options{Now: func() time.Time { return noon }})
	require.NoError(t, err)
	return box
}

func in(t testing.TB, box *inbox.Inbox, f func(tx *inbox.Tx) error) {
	t.Helper()
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	require.NoError(t, f(tx))
	require.NoError(t, tx.Commit())
}

// deliver delivers the next entry to that session.
func deliver(t testing.TB, box *inbox.Inbox, session string) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) error {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: session})
		return err
	})
}

func run(t testing.TB, box *inbox.Inbox, o recovery.Settings, sight recovery.Sight) recovery.Report {
	t.Helper()
	report, err := recovery.Run(context.Background(), recovery.Asker{Box: box, Settings: o}, sight)
	require.NoError(t, err)
	return report
}

// situation is what an operator finds in the inbox's directory.
type situation struct {
	Cursor      string
	InFlight    bool
	Responded   bool
	DeadLetters []dead
	Results     int
	// Next is the entry that would be delivered next, and Attempt the number of that attempt.
	Next    string
	Attempt int
}

// dead is a dead letter in short.
type dead struct {
	Line     string
	Reason   inbox.Reason
	Attempts int
}

func situationOf(t testing.TB, box *inbox.Inbox) (s situation) {
	t.Helper()
	dir := filepath.Dir(box.Path())
	exists := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	if exists(".inbox-offset") {
		b, err := os.ReadFile(filepath.Join(dir, ".inbox-offset"))
		require.NoError(t, err)
		s.Cursor = string(b)
	}
	s.InFlight, s.Responded = exists(".in-flight"), exists(".responded")
	for _, d := range linesOf[inbox.DeadLetter](t, box.DeadLetterPath()) {
		s.DeadLetters = append(s.DeadLetters, dead{d.Text, d.Reason, d.Attempts})
	}
	s.Results = len(linesOf[inbox.Result](t, box.ResultsPath()))
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	if tx.InFlight() == nil {
		if e, err := tx.Next(inbox.Mark{}); err == nil {
			s.Next, s.Attempt = e.Text, e.Attempt
		}
	}
	return s
}

func linesOf[T any](t testing.TB, path string) (all []T) {
	t.Helper()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	for l := range bytes.Lines(b) {
		var v T
		require.NoError(t, json.Unmarshal(l, &v), "%q", l)
		all = append(all, v)
	}
	return all
}

// files returns the directory's files, without the lock.
func files(t testing.TB, box *inbox.Inbox) map[string]string {
	t.Helper()
	dir := filepath.Dir(box.Path())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		if e.Name() != ".inbox-lock" {
			all[e.Name()] = string(b)
		}
	}
	return all
}
