package session_test

import (
	"database/sql"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
)

func (r *rig) messages(id string) (n int) {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+r.Config.DBPath+"?_pragma=busy_timeout(60000)")
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, db.Close()) }()
	require.NoError(r.t, db.QueryRow("SELECT count(*) FROM heartbeat_messages WHERE session_id = ?", id).Scan(&n))
	return n
}

// A database that somebody else holds locked ends no session. Its messages are stored
// later.
func TestDatabaseLocked(t *testing.T) {
	r := newRig(t, "hello")
	db, err := sql.Open("sqlite", r.Config.DBPath)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	for _, q := range []string{"CREATE TABLE other (x)", "BEGIN EXCLUSIVE", "INSERT INTO other VALUES (1)"} {
		_, err = db.Exec(q)
		require.NoError(t, err)
	}
	_, o := r.run()
	assert.Equal(t, folder.Completed, o.State)
	s, _ := r.guild.Session("ses-1")
	assert.Equal(t, 1, s.Messages, "the report has them all")
	assert.FileExists(t, r.folder().SpoolPath())

	_, err = db.Exec("COMMIT")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = session.Drain(t.Context(), session.DrainOptions{DB: r.Config.DBPath})
	require.NoError(t, err)
	assert.Equal(t, 3, r.messages("ses-1"))
	assert.NoFileExists(t, r.folder().SpoolPath())
}

// Hosts beside one database do not get in each other's way.
func TestManyHosts(t *testing.T) {
	const n = 8
	r := newRig(t, "hello")
	var all []*exec.Cmd
	for i := range n {
		r.Config.SessionID = fmt.Sprintf("ses-%d", i)
		r.guild.Expect(r.Config.SessionID)
		cmd := r.command()
		require.NoError(t, cmd.Start())
		all = append(all, cmd)
	}
	for _, cmd := range all {
		require.NoError(t, cmd.Wait())
	}
	_, err := session.Drain(t.Context(), session.DrainOptions{DB: r.Config.DBPath}) // what a busy database did not take
	require.NoError(t, err)
	for i := range n {
		r.Config.SessionID = fmt.Sprintf("ses-%d", i)
		s, _ := r.guild.Session(r.Config.SessionID)
		assert.Equal(t, "completed", s.Status)
		assert.Equal(t, 1, s.Record.Applied)
		assert.Zero(t, s.Record.Repeated)
		assert.Equal(t, 3, r.messages(r.Config.SessionID))
	}
}
