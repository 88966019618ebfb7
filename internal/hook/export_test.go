package hook

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/machine"
)

// Internals for the external tests.
var ErrNoClient = errNoClient

// SetFirstRetry shortens a hook's wait after an error.
func SetFirstRetry(d time.Duration) { firstRetry = d }

// SetLineWait shortens a hook's wait for the transcript.
func SetLineWait(d time.Duration) { lineWait = d }

// SetUsageWait changes how long a hook waits before the session is ended.
func SetUsageWait(d time.Duration) { usageWait = d }

// Wakeable returns the verdict of a hook that this process started.
func Wakeable(parent int) error { return (&hook{carried: carried{Parent: parent}}).wakeable() }

// DeliverWoken leaves the next entry in flight, like a hook that woke session s0 with it.
func DeliverWoken(t testing.TB, box *inbox.Inbox, tx *inbox.Tx, transcript string, bound bool) {
	t.Helper()
	h := &hook{Flags: Flags{Dialogue: Dialogue{Rewake: true}}, box: box, carried: carried{Began: machine.SinceBoot()}, call: call{input: &claude.Input{SessionID: "s0", PromptID: "p-s0", TranscriptPath: transcript}}}
	entry, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	_, spill, err := h.textOf(entry)
	require.NoError(t, err)
	to, e := inbox.Recipient{SessionID: h.input.SessionID}, h.wokenWith(spill)
	e.Bound, e.PID, e.ProcessStart = bound, 0, 0
	if bound {
		to.PromptID = h.input.PromptID
	}
	to.Evidence = e.Encode()
	_, err = tx.Deliver(entry, to)
	require.NoError(t, err)
}

// change commits a change to an inbox.
func change(t testing.TB, path string, f func(*inbox.Inbox, *inbox.Tx)) {
	t.Helper()
	look(t, path, func(box *inbox.Inbox, tx *inbox.Tx) {
		f(box, tx)
		require.NoError(t, tx.Commit())
	})
}

// look opens a transaction that changes nothing.
func look(t testing.TB, path string, f func(*inbox.Inbox, *inbox.Tx)) {
	t.Helper()
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	f(box, tx)
}

// newInbox creates an inbox with that content.
func newInbox(t testing.TB, content string) (path string) {
	t.Helper()
	path = t.TempDir() + "/inbox.jsonl"
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
