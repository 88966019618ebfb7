package session_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
)

// A session whose host was of an older release, and died before it had sent the report
// that it had kept, is finished with what that release has left.
func TestFinishAnOlderSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	f := r.folder()
	require.NoError(t, f.Make())
	dead := folder.Process{PID: 1 << 22, Start: 1}
	record, err := json.Marshal(folder.State{
		Config:  folder.Config{Version: 1, SessionID: f.ID, DB: f.DB, GuildToolURL: r.server.URL, Inbox: f.InboxPath(), OwnInbox: true},
		Facts:   folder.Facts{Host: &dead, Messages: 2},
		Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Running}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.StatePath(), record, 0o600))
	require.NoError(t, os.WriteFile(f.SpoolPath(), []byte(`{"session":"ses-1","after":0,"unsure":false}
{"n":1,"at":"2026-05-01T12:00:00.000Z","type":"user","content":{"type":"user"}}
{"n":2,"at":"2026-05-01T12:00:00.000Z","type":"assistant","content":{"type":"assistant"}}
`), 0o600))
	require.NoError(t, os.Mkdir(r.path("dlq"), 0o700))
	require.NoError(t, os.WriteFile(r.path("dlq/ses-1.json"), []byte(`{"sessionId":"ses-1","status":"completed","output":"done","transcript":[1,2]}`), 0o600))

	o, err := session.Finish(t.Context(), f.Dir(), false)
	require.NoError(t, err)
	assert.Equal(t, folder.Completed, o.State)
	assert.True(t, o.Delivered)
	assert.False(t, o.Left)
	s, _ := r.guild.Session("ses-1")
	assert.Equal(t, 1, s.Record.Applied)
	assert.Equal(t, 2, s.Messages)
	assert.Equal(t, "done", r.report()["output"])
	assert.NoFileExists(t, f.SpoolPath())
	assert.NoFileExists(t, f.StatePath())
	assert.Equal(t, 2, r.messages("ses-1"))
	r.isClean()
	_, err = session.Finish(t.Context(), f.Dir(), false)
	require.ErrorIs(t, err, session.ErrFinished)
}

// A host's database that was removed after the end was decided takes nothing with it that
// the guild was not told.
func TestDatabaseRemovedBeforeTheReport(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	r.guild.Break(refusing)
	_, o := r.run()
	assert.False(t, o.Delivered)
	s := r.state()
	for _, name := range []string{"host.db", "host.db-wal", "host.db-shm"} {
		_ = os.Remove(r.path("heartbeat-host/" + name))
	}
	lock, err := r.folder().Lock(t.Context())
	require.NoError(t, err)
	dead := folder.Process{PID: 1 << 22, Start: 1}
	s.Host, s.TerminalReport.State = &dead, folder.Waiting
	require.NoError(t, lock.Write(s))
	require.NoError(t, lock.Release())
	r.guild.Mend()
	again, err := session.Finish(t.Context(), r.folder().Dir(), false)
	require.NoError(t, err)
	assert.Equal(t, o.Decision.State, again.State)
	applied, _ := r.guild.Session("ses-1")
	assert.Equal(t, 1, applied.Record.Applied)
}

// A damaged database takes no session with it whose host is dead, as far as it can be read.
func TestDatabaseDamagedAfterTheHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(r *rig, path string)
		lost   string
	}{
		"in part": {func(r *rig, path string) {
			db, err := sql.Open("sqlite", path)
			require.NoError(r.t, err)
			page := int64(0)
			require.NoError(r.t, db.QueryRow("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").Scan(&page))
			require.NoError(r.t, db.Close()) // which moves all into the file
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(r.t, err)
			_, err = f.WriteAt(bytes.Repeat([]byte("?"), 4096), (page-1)*4096)
			require.NoError(r.t, errors.Join(err, f.Close()))
		}, ""},
		"wholly": {func(r *rig, path string) {
			_ = os.Remove(path + "-wal")
			require.NoError(r.t, os.WriteFile(path, []byte("this is no database, whoever wrote it"), 0o600))
		}, "its record was in the database that was damaged, and is DIR/heartbeat-host/host.db.damaged-"},
		"removed": {func(r *rig, path string) {
			_, _ = os.Remove(path+"-wal"), os.Remove(path+"-shm")
			require.NoError(r.t, os.Remove(path))
		}, "its record was in the database that was removed: its end cannot be reported to its guild; its prompts are in DIR/heartbeat-host/ses-1/inbox/inbox.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "hang")
			r.slay(r.hang())
			c.damage(r, r.path("heartbeat-host/host.db"))
			d, err := session.Drain(t.Context(), session.DrainOptions{DB: r.Config.DBPath})
			applied, _ := r.guild.Session("ses-1")
			if c.lost != "" {
				require.ErrorContains(t, err, strings.ReplaceAll(c.lost, "DIR", r.dir))
				assert.Zero(t, applied.Record.Applied)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []string{"ses-1"}, d.Finished)
			assert.Equal(t, "failed", r.report()["status"])
			assert.Equal(t, 1, applied.Record.Applied)
		})
	}
}
