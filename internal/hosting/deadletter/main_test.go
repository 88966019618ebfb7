package deadletter

import (
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/testing/crash"
	testguild "heartbeat/internal/testing/guild"
)

func TestMain(m *testing.M) {
	testguild.RunIfAsked()
	crash.Main(m, map[string]func() int{"end": end, "drain": drainChild})
}

func newGuild(t *testing.T, o testguild.Options) (*testguild.Guild, string) {
	g, err := testguild.Open(o)
	require.NoError(t, err)
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		require.NoError(t, g.Close())
		server.Close()
	})
	return g, server.URL
}

func newBox(t *testing.T) (db string, box Box) {
	db = filepath.Join(t.TempDir(), "nexus.db")
	return db, Beside(db)
}

func newClient(t *testing.T, url, session string, clock guild.Clock) *guild.Client {
	c, err := guild.New(guild.Options{URL: url, SessionID: session, Clock: clock, RequestTimeout: 10 * time.Minute})
	require.NoError(t, err)
	return c
}

func runningOf(session string) guild.Running {
	return guild.Running{SessionID: session, StartedAt: "2026-11-22T00:00:00Z", Provider: "claude-code", Cancel: guild.LocalGroup(4711)}
}

func recordOf(session string) *guild.Record {
	return &guild.Record{SessionID: session, Status: guild.Completed, Transcript: func(w io.Writer) error {
		_, err := io.WriteString(w, `[{"type":"user"}]`)
		return err
	}}
}

// at answers the same URL for every session.
func at(url string) func(string) string { return func(string) string { return url } }

func write(t *testing.T, path, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func whats(outcomes []Outcome) (all []string) {
	for _, o := range outcomes {
		all = append(all, string(o.Kind)+" "+o.SessionID+" "+o.What)
	}
	return all
}
