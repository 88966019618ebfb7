package session_test

import (
	"database/sql"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"heartbeat/internal/hosting/session"
)

// messages is how many messages the guild's table has of a session.
func (r *rig) messages(id string) (n int) {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+r.Config.DBPath+"?_pragma=busy_timeout(60000)")
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, db.Close()) }()
	require.NoError(r.t, db.QueryRow("SELECT json_array_length(content, '$.messages') FROM books_animator_transcripts WHERE id = ?", id).Scan(&n))
	return n
}

// A database that somebody else holds locked, in the full rounds for ten minutes, ends no
// session, and gets what it lacks once it is free. The report says what it lacks, whoever
// makes it.
func TestDatabaseLocked(t *testing.T) {
	for name, kill := range map[string]string{"host": "", "finisher": "ended"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "hello")
			r.inRealTime()
			db, err := sql.Open("sqlite", r.Config.DBPath)
			require.NoError(t, err)
			db.SetMaxOpenConns(1)
			for _, q := range []string{"CREATE TABLE other (x)", "BEGIN EXCLUSIVE", "INSERT INTO other VALUES (1)"} {
				_, err = db.Exec(q)
				require.NoError(t, err)
			}
			cmd := r.command()
			cmd.Env = append(cmd.Env, killVariable+"="+kill)
			_ = cmd.Run() // it may be killed
			r.until("the session is reported", func() bool { s, _ := r.guild.Session("ses-1"); return s.Record.Applied == 1 })
			assert.Equal(t, "completed", r.report()["status"])
			s, _ := r.guild.Session("ses-1")
			assert.Equal(t, 1, s.Messages, "the report has them all")
			assert.Equal(t, 1.0, r.report()["waiting"])
			assert.Regexp(t, `the transcript cannot be written to the guild's table.*tried again \(`, fmt.Sprint(r.report()["warnings"]))
			assert.NotNil(t, r.state().Guardian, "which waits for the table")

			r.lasts(10 * time.Minute)
			_, err = db.Exec("COMMIT")
			require.NoError(t, err)
			require.NoError(t, db.Close())
			r.brought()
			assert.Equal(t, 1, r.messages("ses-1"), "nobody had to run a command")
			assert.Nil(t, r.state().Guardian)
		})
	}
}

// A session that cannot begin, since the host's own database is locked, leaves nothing that looks like a dead one.
func TestHostDatabaseLocked(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	r.run()
	db, err := sql.Open("sqlite", r.path("heartbeat-host/host.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	_, err = db.Exec("BEGIN EXCLUSIVE")
	require.NoError(t, err)
	r.Config.SessionID = "ses-2"
	cmd := r.command()
	cmd.Stderr = nil // Output keeps it
	_, err = cmd.Output()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	said := string(ended.Stderr)
	assert.Contains(t, said, "database is locked")
	assert.NoDirExists(t, r.path("heartbeat-host/ses-2"), "%s", said)
}

// Hosts beside one database do not get in each other's way.
func TestManyHosts(t *testing.T) {
	t.Parallel()
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
	r.alone()                                                                       // two that deliver may both be taken for the one
	_, err := session.Drain(t.Context(), session.DrainOptions{DB: r.Config.DBPath}) // what a busy database did not take
	require.NoError(t, err)
	for i := range n {
		r.Config.SessionID = fmt.Sprintf("ses-%d", i)
		s, _ := r.guild.Session(r.Config.SessionID)
		assert.Equal(t, "completed", s.Status)
		assert.Equal(t, 1, s.Record.Applied, "however often a busy machine has it sent")
		assert.Equal(t, 1, r.messages(r.Config.SessionID))
	}
}
