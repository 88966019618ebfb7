package account_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
)

func TestMain(m *testing.M) {
	machine.TestOnlyTrustAll = true // TestForgedCosts covers the rest
	os.Exit(m.Run())
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 123456789, time.UTC)

func newBox(t testing.TB, content string) *inbox.Inbox {
	t.Helper()
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
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

// in runs f in a transaction, and commits it.
func in(t testing.TB, box *inbox.Inbox, f func(tx *inbox.Tx)) (warnings []string) {
	t.Helper()
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	f(tx)
	require.NoError(t, tx.Commit())
	return tx.Warnings()
}

// acknowledge answers the entry in flight.
func acknowledge(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("done")) })
}

func results(t testing.TB, box *inbox.Inbox) (all []inbox.Result) {
	t.Helper()
	b, err := os.ReadFile(box.ResultsPath())
	require.NoError(t, err)
	for l := range strings.Lines(string(b)) {
		var r inbox.Result
		require.NoError(t, json.Unmarshal([]byte(l), &r))
		all = append(all, r)
	}
	return all
}
