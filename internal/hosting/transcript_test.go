package hosting

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/stream"
)

const (
	asked = `{"type":"user","message":{"content":"why <&>?\u001b[2J"}}`
	saidA = `{"type":"assistant","message":{"content":[{"type":"text","text":"let me look"},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}`
	saidB = `{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"a\nb"}]}]}}`
)

// keep has the database hold a session's messages.
func (w *world) keep(id string, messages ...string) {
	s := w.transcript(id)
	for _, m := range messages {
		s.Append(line(w.t, m))
	}
	require.NoError(w.t, s.Flush(w.t.Context()))
	require.NoError(w.t, s.Show(w.t.Context()))
	s.Close()
}

// sql runs statements on a connection of its own, which stays open.
func (w *world) sql(statements ...string) {
	db, err := sql.Open("sqlite", w.db)
	require.NoError(w.t, err)
	db.SetMaxOpenConns(1)
	w.t.Cleanup(func() { assert.NoError(w.t, db.Close()) })
	for _, statement := range statements {
		_, err := db.Exec(statement)
		require.NoError(w.t, err, statement)
	}
}

func TestTranscript(t *testing.T) {
	w := newWorld(t)
	w.session("ses-1", nil)
	w.keep("ses-1", `{"type":"system"}`, asked, saidA, saidB, string(stream.StandIn(stream.SubtypeLost, 0).Raw), `{"type":"result"}`)
	whole := ran{0, asked + "\n" + saidA + "\n" + saidB + "\n", "heartbeat-host: 1 message of the session could not be kept, and may have been part of it\n"}
	assert.Equal(t, whole, call(t, "", "transcript", "ses-1"))
	assert.Equal(t, whole, call(t, "", "transcript", "ses", "--json", "--db", w.db))
	text := call(t, "", "transcript", "ses-1", "--text")
	assert.Regexp(t, `^user  \S+ \S+\nwhy <&>\?\\u001b\[2J\n\nassistant  \S+ \S+\nlet me look\ncalls Bash \{"command":"ls"\}\n\nuser  \S+ \S+\ntool answers:\na\nb\n\n$`, text.out)
	assert.Contains(t, call(t, "", "transcript", "ses-1", "--text", "--json").err, "leave one out")
}

// What gc removes is not the transcript.
func TestTranscriptAfterCollection(t *testing.T) {
	w := newWorld(t)
	f := w.session("ses-1", nil)
	w.keep("ses-1", asked, `{"type":"result"}`)
	w.session("ses-10", func(s *folder.State) { s.Entries.Queued = 1 })
	w.keep("ses-10", saidA)
	require.Equal(t, 0, call(t, "", "gc", "--older-than", "1h").status)
	require.NoDirExists(t, f.Dir())

	assert.Equal(t, ran{0, asked + "\n", ""}, call(t, "", "transcript", "ses-1"))
	assert.Equal(t, saidA+"\n", call(t, "", "transcript", "ses-10").out)
	assert.Contains(t, call(t, "", "transcript", "ses").err, `"ses" may be any of 2 sessions: name one of ses-10, ses-1`)

	require.Equal(t, 0, call(t, "", "gc", "--older-than", "1h", "--unanswered").status)
	assert.Empty(t, call(t, "", "list", "--json").out)
	assert.Equal(t, asked+"\n", call(t, "", "transcript", "ses-1").out)
	assert.Equal(t, asked+"\n", call(t, "", "transcript", "ses-1", "--db", w.db).out)
	require.NoError(t, os.Remove(w.db))
	assert.Equal(t, ran{0, asked + "\n", ""}, call(t, "", "transcript", "ses-1"))
	assert.Equal(t, ran{0, asked + "\n", ""}, call(t, "", "transcript", "ses-1", "--db", w.db))
	assert.Contains(t, call(t, "", "transcript", "other").err, `no session is called "other" in the databases of this user's sessions: name another database with --db`)
}

// The babysitter had no table but the guild's.
func TestTranscriptOfTheBabysitters(t *testing.T) {
	w := newWorld(t)
	w.sql("CREATE TABLE books_animator_transcripts (id TEXT PRIMARY KEY, content TEXT NOT NULL)",
		`INSERT INTO books_animator_transcripts VALUES ('ses-old', '{"id":"ses-old","messages":[`+asked+`, `+saidA+`]}'), ('ses-bad', 'x')`)
	assert.Equal(t, ran{0, asked + "\n" + saidA + "\n", ""}, call(t, "", "transcript", "ses-old", "--db", w.db))
	assert.Regexp(t, `^user\nwhy`, call(t, "", "transcript", "ses-old", "--db", w.db, "--text").out)
	bad := call(t, "", "transcript", "ses-bad", "--db", w.db)
	assert.Equal(t, 1, bad.status)
	assert.Contains(t, bad.err, "nexus.db: the row of session ses-bad: invalid character")
}

// A running session's is what it has said so far; nothing waits for more.
func TestTranscriptOfARunningSession(t *testing.T) {
	w := newWorld(t)
	f, err := folder.At(w.db, "ses-1")
	require.NoError(t, err)
	require.NoError(t, f.Make())
	store := w.transcript("ses-1")
	b := &fake{state: folder.State{Config: folder.Config{SessionID: "ses-1"}, Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Running}}}}
	w.running("ses-1", b)
	assert.Equal(t, ran{0, "", ""}, call(t, "", "transcript", "ses-1"))
	store.Append(line(t, asked))
	b.state.Messages = 1
	assert.Equal(t, ran{0, asked + "\n", ""}, call(t, "", "transcript", "ses-1"))
	store.Close()
}

func TestNoTranscript(t *testing.T) {
	w := newWorld(t)
	nowhere := filepath.Join(filepath.Dir(w.db), "nowhere.db")
	assert.Contains(t, call(t, "", "transcript", "ses-1", "--db", nowhere).err, "transcript: there is no database "+nowhere+"\n")
	require.NoError(t, os.WriteFile(nowhere, []byte(strings.Repeat("no database", 100)), 0o600))
	assert.Contains(t, call(t, "", "transcript", "ses-1", "--db", nowhere).err, "file is not a database")
	w.sql("CREATE TABLE other (a)")
	assert.Contains(t, call(t, "", "transcript", "ses-1", "--db", w.db).err, `no session is called "ses-1"`)
	w.sql("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "INSERT INTO other VALUES (1)")
	locked := call(t, "", "transcript", "ses-1", "--db", w.db)
	assert.Equal(t, 1, locked.status)
	assert.Contains(t, locked.err, "another program has locked it: try again once that is done")
}
