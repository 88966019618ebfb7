package guild

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
	testguild "heartbeat/internal/testing/guild"
)

// box is the reports of a test.
type box struct {
	Outbox
	t     *testing.T
	guild string // the database
}

func newBox(t *testing.T) *box {
	db := filepath.Join(t.TempDir(), "nexus.db")
	require.NoError(t, folder.MakeRoot(db))
	b := &box{OutboxBeside(db), t, db}
	t.Cleanup(b.Close)
	return b
}

// record keeps the record of a session with one message.
func (b *box) record(session string, change func(*Record)) {
	b.t.Helper()
	require.NoError(b.t, b.db.Append(b.t.Context(), session, []store.Message{{N: 1, At: time.Now(), Type: "user", Content: []byte(`{"type":"user"}`)}}))
	r := &Record{Summary: folder.Summary{Status: folder.Completed}, SessionID: session}
	if change != nil {
		change(r)
	}
	_, _, err := b.Decide(b.t.Context(), r, "", 1, nil)
	require.NoError(b.t, err)
}

// running keeps the report that a session runs.
func (b *box) running(session string) {
	b.t.Helper()
	head := `{"sessionId":"` + session + `","startedAt":"2026-11-22T00:00:00Z","provider":"claude-code","cancelHandle":{"kind":"local-pgid","pgid":4711}}`
	_, err := b.db.Decide(b.t.Context(), store.Report{Session: session, Kind: store.Running, Head: head}, nil)
	require.NoError(b.t, err)
}

func (b *box) client(url, session string) *Client {
	c, err := New(Options{URL: url, SessionID: session, Clock: &testguild.Clock{}, RequestTimeout: 10 * time.Minute})
	require.NoError(b.t, err)
	return c
}

// drain drains, and returns what became of each report.
func (b *box) drain(o DrainOptions) (all []string) {
	b.t.Helper()
	o.DB = b.guild
	outcomes, err := Drain(b.t.Context(), o)
	require.NoError(b.t, err)
	return whats(outcomes)
}

func (b *box) nothingLeft() {
	b.t.Helper()
	unsent, err := b.db.Unsent(b.t.Context())
	require.NoError(b.t, err)
	assert.Empty(b.t, unsent)
	names, err := filepath.Glob(filepath.Join(b.dir, "*"))
	require.NoError(b.t, err)
	assert.Empty(b.t, names)
}

// at answers the same URL for every session.
func at(url string) func(string) string { return func(string) string { return url } }

func write(t *testing.T, path, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func whats(outcomes []DrainOutcome) (all []string) {
	for _, o := range outcomes {
		all = append(all, string(o.Kind)+" "+o.SessionID+" "+o.What)
	}
	return all
}
