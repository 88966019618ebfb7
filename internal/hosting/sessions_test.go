package hosting

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/see"
)

// world is a folder with a database, and an index of its own.
type world struct {
	t  *testing.T
	db string
}

func newWorld(t *testing.T) *world {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	return &world{t, filepath.Join(t.TempDir(), "nexus.db")}
}

// session makes a session with a record, and leaves its lock to nobody.
func (w *world) session(id string, change func(*folder.State)) folder.Folder {
	f, lock := w.held(id, change)
	require.NoError(w.t, lock.Release())
	return f
}

// held is session with its lock held, as by a host.
func (w *world) held(id string, change func(*folder.State)) (folder.Folder, *folder.Lock) {
	w.t.Helper()
	f, err := folder.At(w.db, id)
	require.NoError(w.t, err)
	lock, err := f.Claim(w.t.Context())
	require.NoError(w.t, err)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s := &folder.State{
		Config: folder.Config{
			Version: folder.Version, SessionID: id, DB: w.db, Inbox: f.InboxPath(),
			OwnInbox: true, LogPath: filepath.Join(filepath.Dir(w.db), "logs", id+".log"), GuildToolURL: "http://127.0.0.1:1", StartedAt: "2026-05-01T12:00:00Z",
			HostedAt: at,
		},
		Facts:   folder.Facts{Entries: folder.Entries{Answered: 1}, TerminalReport: folder.Report{State: folder.Delivered}},
		Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Completed}, EndedAt: &at},
	}
	if change != nil {
		change(s)
	}
	require.NoError(w.t, lock.Write(s))
	require.NoError(w.t, folder.Remember(w.db))
	return f, lock
}

// running makes a session that is hosted by this process.
func (w *world) running(id string, b attach.Backend) folder.Folder {
	f, _ := w.runs(id, b)
	return f
}

// runs is running with the lock that its host holds.
func (w *world) runs(id string, b attach.Backend) (folder.Folder, *folder.Lock) {
	f, lock := w.held(id, func(s *folder.State) {
		self := folder.ProcessOf(os.Getpid())
		s.Status, s.EndedAt, s.Host = folder.Running, nil, &self
	})
	server, err := attach.Serve(f.Dir(), b, attach.Options{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		assert.NoError(w.t, errors.Join(server.Close(0), lock.Release()))
	})
	return f, lock
}

// transcript is that of a session.
func (w *world) transcript(id string) *stream.Transcript {
	db := store.In(folder.Root(w.db), id)
	require.NoError(w.t, db.Begin(w.t.Context(), id, w.db, nil))
	s, err := stream.OpenTranscript(w.t.Context(), stream.TranscriptOptions{DB: db, Guild: w.db, SessionID: id})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { assert.NoError(w.t, db.Close()) })
	return s
}

// unsent keeps a record that no guild has taken.
func (w *world) unsent(id string) {
	box := guild.OutboxBeside(w.db)
	defer box.Close()
	require.NoError(w.t, folder.MakeRoot(w.db))
	_, _, err := box.Decide(w.t.Context(), &guild.Record{Summary: folder.Summary{Status: folder.Failed}, SessionID: id}, "", 0, nil)
	require.NoError(w.t, err)
}

// fake is a backend.
type fake struct {
	state folder.State
	grace time.Duration
	sent  []inbox.Message
	err   error
}

func (f *fake) Status() any { return &f.state }

func (f *fake) Cancel(_ context.Context, e attach.End) error {
	f.grace = e.Grace
	return f.err
}

func (f *fake) Send(_ context.Context, m inbox.Message) (inbox.Receipt, error) {
	f.sent = append(f.sent, m)
	return inbox.Receipt{ID: m.ID, EntryID: "e", Appended: true}, f.err
}

func TestList(t *testing.T) {
	w := newWorld(t)
	assert.Equal(t, ran{0, "", "heartbeat-host: no session is hosted by this user\n"}, call(t, "", "list"))
	cost := 0.5
	w.session("ses-b", func(s *folder.State) {
		s.Status, s.Error, s.CostUSD, s.Entries.DeadLettered = folder.Failed, "claude exited\nwith code 1\x1b[31m", &cost, 1
		s.HostedAt = s.HostedAt.Add(time.Hour)
	})
	w.session("ses-a", nil)
	w.session("ses-c", func(s *folder.State) { s.Status, s.EndedAt, s.Entries.Unread = folder.Running, nil, 1 })
	got := call(t, "", "list")
	require.Equal(t, 0, got.status, got.err)
	assert.NotContains(t, got.out, "\x1b")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	require.Len(t, lines, 3)
	assert.Contains(t, lines[0], "ses-a\tcompleted\t")
	assert.Contains(t, lines[1], "ses-c\tdead\t")
	assert.Contains(t, lines[1], "\t1/2\t")
	assert.Contains(t, lines[1], "heartbeat-host cancel ses-c finishes it")
	assert.Contains(t, lines[2], "ses-b\tfailed\t")
	assert.Contains(t, lines[2], "\t1/2\t0\t$0.5000\tclaude exited with code 1")
	assert.Equal(t, got.out, call(t, "", "list", "--db", w.db).out)
	assert.Contains(t, call(t, "", "list", "--running", "--json").out, `"sessionId":"ses-c",`)
	assert.Contains(t, call(t, "", "list", "--running", "--json").out, `"status":"dead"`)
	assert.Equal(t, ran{0, "", "heartbeat-host: no session is hosted beside /nowhere/x.db\n"}, call(t, "", "list", "--db", "/nowhere/x.db"))
}

// paused makes an inbox in which delivery is paused, and returns what is wrong with it.
func paused(t *testing.T, path string) see.Trouble {
	t.Helper()
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Holds().Pause("the bill\x1b[31m", nil)
	require.NoError(t, err)
	require.NoError(t, errors.Join(tx.Commit(), tx.Close()))
	all := see.TroublesAt(path)[0]
	require.Len(t, all, 1)
	return all[0]
}

// What is wrong with a session's inbox is said in the words of heartbeat status, until the
// session has ended.
func TestTroublesOfTheInbox(t *testing.T) {
	w := newWorld(t)
	f := w.session("ses-1", func(s *folder.State) { s.Status, s.EndedAt = folder.Running, nil })
	trouble := paused(t, f.InboxPath())
	got := call(t, "", "status", "ses-1")
	assert.Contains(t, got.out, "trouble ")
	assert.Contains(t, got.out, trouble.Text)
	assert.NotContains(t, got.out, "\x1b")
	assert.Contains(t, call(t, "", "list").out, trouble.Text)
	for _, verb := range [][]string{{"list"}, {"status", "ses-1"}} {
		assert.Contains(t, call(t, "", append(verb, "--json")...).out, `"troubles":[{"kind":"paused",`)
	}

	f = w.session("ses-2", nil)
	paused(t, f.InboxPath())
	assert.NotContains(t, call(t, "", "status", "ses-2").out, "trouble")
}

func TestStatusAndItsNames(t *testing.T) {
	w := newWorld(t)
	w.session("ses-1", nil)
	w.session("ses-12", nil)
	w.session("ses-2", func(s *folder.State) {
		s.Result = &folder.Result{ResultLine: folder.ResultLine{Subtype: "success", NumTurns: 2}}
		s.Exit = &folder.Exit{Code: 1, Signal: "SIGKILL", Forced: true}
		s.Warnings = []string{"the client never asked for its tools"}
	})
	got := call(t, "", "status", "ses-2")
	require.Equal(t, 0, got.status, got.err)
	for _, row := range []string{
		"session +ses-2", "state +completed", "entries +1 answered", "result +success, 2 turns", "final report +delivered",
		"exit +SIGKILL, killed since it did not exit after its result", "warning +the client never asked for its tools",
	} {
		assert.Regexp(t, "(?m)^"+row+"$", got.out)
	}
	assert.Contains(t, call(t, "", "status", "ses-1", "--json").out, `"sessionId":"ses-1"`, "the whole id is that of one")
	assert.Contains(t, call(t, "", "status", "ses-12", "--json").out, `"sessionId":"ses-12"`)
	assert.Equal(t, ran{1, "", "heartbeat-host: status: \"ses\" may be any of 3 sessions: name one of ses-1, ses-12, ses-2\n"}, call(t, "", "status", "ses"))
	assert.Equal(t, ran{1, "", "heartbeat-host: status: no session is called \"x\": heartbeat-host list shows them\n"}, call(t, "", "status", "x"))

	other := *w
	other.db = filepath.Join(t.TempDir(), "other.db")
	other.session("ses-2", nil)
	assert.Contains(t, call(t, "", "status", "ses-2").err, "there are sessions called ses-2 beside "+w.db+" and beside "+other.db+": name the database with --db")
	assert.Contains(t, call(t, "", "status", "ses-2", "--db", other.db, "--json").out, other.db)
}

func TestStatusAsksTheHost(t *testing.T) {
	w := newWorld(t)
	w.running("ses-1", &fake{state: folder.State{Config: folder.Config{Version: 1, SessionID: "ses-1"}, Facts: folder.Facts{Messages: 77}, Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Running}}}})
	var s folder.State
	require.NoError(t, json.Unmarshal([]byte(call(t, "", "status", "ses-1", "--json").out), &s))
	assert.Equal(t, int64(77), s.Messages)
}

func TestSend(t *testing.T) {
	w := newWorld(t)
	b := &fake{}
	f := w.running("ses-1", b)
	got := call(t, "", "send", "ses-1", "and now", "--id", "a")
	assert.Equal(t, ran{0, "a\n", ""}, got)
	assert.Equal(t, ran{0, "b\n", ""}, call(t, "from stdin\n", "send", "ses", "--id", "b"))
	assert.Equal(t, []inbox.Message{{ID: "a", Text: "and now"}, {ID: "b", Text: "from stdin"}}, b.sent)

	long := strings.Repeat("x", attach.MaxText+1)
	got = call(t, long, "send", "ses-1", "-", "--id", "long", "--json")
	require.Equal(t, 0, got.status, got.err)
	assert.Contains(t, got.out, `"appended":true`)
	assert.Len(t, b.sent, 2, "it goes to the inbox")
	queue, err := os.ReadFile(f.InboxPath())
	require.NoError(t, err)
	assert.Contains(t, string(queue), long)

	b.err = attach.ErrEnded
	assert.Contains(t, call(t, "", "send", "ses-1", "late").err, "nothing was appended")
	w.session("ses-2", nil)
	assert.Equal(t, "heartbeat-host: send: session ses-2 has ended (completed): nothing was appended: to continue it, run"+
		" heartbeat-host start --resume --config FILE with the text as the prompt\n", call(t, "", "send", "ses-2", "late").err)
	w.session("ses-3", func(s *folder.State) { s.Status, s.EndedAt = folder.Running, nil })
	assert.Contains(t, call(t, "", "send", "ses-3", "late").err, "the host of session ses-3 was killed: nothing was appended: finish the session with heartbeat-host cancel ses-3")
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	b := &fake{}
	w.running("ses-1", b)
	assert.Equal(t, ran{0, "session ses-1 is asked to end: heartbeat-host status ses-1 shows what becomes of it\n", ""}, call(t, "", "cancel", "ses-1"))
	assert.Negative(t, b.grace)
	got := call(t, "", "cancel", "ses-1", "--grace", "3s", "--json")
	assert.Equal(t, ran{0, `{"sessionId":"ses-1","status":"running"}` + "\n", ""}, got)
	assert.Equal(t, 3*time.Second, b.grace)
	b.err = errors.New("the disk is full")
	assert.Equal(t, ran{1, "", "heartbeat-host: cancel: the disk is full\n"}, call(t, "", "cancel", "ses-1"))
	w.session("ses-2", nil)
	assert.Equal(t, ran{0, "session ses-2 has ended already: completed\n", ""}, call(t, "", "cancel", "ses-2", "--wait"))
}

func TestLogs(t *testing.T) {
	w := newWorld(t)
	f := w.session("ses-1", nil)
	assert.Contains(t, call(t, "", "logs", "ses-1").err, "session ses-1 has no log: ")
	h, err := f.View()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(h.State.LogPath), 0o700))
	long := strings.Repeat("l", 100_000)
	require.NoError(t, os.WriteFile(h.State.LogPath, []byte("one\n"+long+"\nthree \x1b[2J\nno end"), 0o600))
	assert.Equal(t, ran{0, "one\n" + long + "\nthree \\u001b[2J\nno end\n", ""}, call(t, "", "logs", "ses-1"))
	assert.Equal(t, "three \\u001b[2J\nno end\n", call(t, "", "logs", "ses-1", "-n", "2").out)
	assert.Equal(t, long+"\nthree \\u001b[2J\nno end\n", call(t, "", "logs", "ses-1", "-n", "3").out)
	assert.Equal(t, "no end\n", call(t, "", "logs", "ses-1", "-n", "1", "--follow").out, "it has ended")
	assert.Equal(t, `{"line":"no end"}`+"\n", call(t, "", "logs", "ses-1", "-n", "1", "--json").out)
	require.NoError(t, os.WriteFile(h.State.LogPath, []byte(strings.Repeat("l", 3<<20)+"\nshort\r\n"), 0o600))
	assert.Regexp(t, `^l+\.\.\. and \d+ more bytes\nshort\n$`, call(t, "", "logs", "ses-1").out)
	require.NoError(t, os.Remove(h.State.LogPath))
	require.NoError(t, os.Mkdir(h.State.LogPath, 0o700))
	assert.Equal(t, 1, call(t, "", "logs", "ses-1").status)
}

// line is a message of the client's.
func line(t *testing.T, raw string) stream.Message {
	m, is := stream.Parse([]byte(raw))
	require.True(t, is)
	return m
}

func TestAttach(t *testing.T) {
	w := newWorld(t)
	f, _ := folder.At(w.db, "ses-1")
	require.NoError(t, f.Make())
	store := w.transcript("ses-1")
	_, lock := w.runs("ses-1", &fake{})
	store.Append(line(t, `{"type":"system","subtype":"init"}`))
	store.Append(line(t, `{"type":"assistant","message":{"content":[{"type":"text","text":"hello\n\u001b[2J"},{"type":"tool_use","name":"Bash"}]}}`))
	store.Append(line(t, `{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":"no"}]}}`))
	store.Append(line(t, `{"type":"result","subtype":"success","result":"done"}`))
	printed := make(chan ran)
	go func() { printed <- call(t, "", "attach", "ses-1", "--from", "2") }()
	require.NoError(t, store.Flush(t.Context()))
	store.Close()
	state, err := lock.Read()
	require.NoError(t, err)
	state.Status = folder.Completed
	require.NoError(t, lock.Write(state))
	live := <-printed
	require.Equal(t, 0, live.status, live.err)
	for i, want := range []string{"\t2\tassistant\thello  [2J calls Bash", "\t3\tuser\ttool fails: no", "\t4\tresult\tsuccess done"} {
		assert.Contains(t, strings.Split(live.out, "\n")[i], want)
	}

	other := folder.Folder{ID: "ses-1", DB: w.db}
	require.DirExists(t, other.Dir())
	got := call(t, "", "attach", "ses-1", "--json", "--from", "4")
	require.Equal(t, 0, got.status, got.err)
	assert.Contains(t, got.out, `{"n":4,"at":"`)
	assert.Contains(t, got.out, `,"type":"result","content":{"type":"result","subtype":"success","result":"done"}}`)
}

func TestAttachToAnEndedSession(t *testing.T) {
	w := newWorld(t)
	w.session("ses-1", nil)
	store := w.transcript("ses-1")
	store.Append(line(t, `{"type":"system","subtype":"init"}`))
	store.Append(line(t, `{"type":"result","result":"<&>"}`))
	require.NoError(t, store.Flush(t.Context()))
	store.Close()
	got := call(t, "", "attach", "ses-1", "--json")
	require.Equal(t, 0, got.status, got.err)
	assert.Equal(t, 2, strings.Count(got.out, "\n"))
	assert.Contains(t, got.out, `"content":{"type":"result","result":"<&>"}}`)
	assert.Equal(t, ran{0, "", ""}, call(t, "", "attach", "ses-1", "--from", "3"))
}

func TestCollect(t *testing.T) {
	w := newWorld(t)
	assert.Equal(t, ran{0, "", "heartbeat-host: nothing to do\n"}, call(t, "", "gc"))
	old := w.session("ses-old", func(s *folder.State) { s.Entries.DeadLettered = 1 }) // no reason to keep it
	now := time.Now()
	fresh := w.session("ses-new", func(s *folder.State) { s.EndedAt = &now })
	waiting := w.session("ses-waits", nil)
	w.unsent("ses-waits")
	left := w.session("ses-left", func(s *folder.State) { s.Entries.Queued = 1 })
	w.running("ses-runs", &fake{})
	require.NoError(t, os.WriteFile(filepath.Join(fresh.TempDir(), "mcp-config.json"), nil, 0o600))

	dry := call(t, "", "gc", "--older-than", "1h", "--dry-run")
	assert.Equal(t, 0, dry.status, dry.err)
	assert.Contains(t, dry.out, "not done: remove "+old.Dir())
	assert.DirExists(t, old.Dir())

	got := call(t, "", "gc", "--older-than", "1h", "--json")
	assert.Equal(t, 0, got.status, got.err)
	assert.NoDirExists(t, old.Dir())
	assert.NoDirExists(t, fresh.TempDir())
	assert.DirExists(t, waiting.Dir())
	assert.DirExists(t, left.Dir())
	assert.Contains(t, got.out, `"sessionId":"ses-waits","folder":"`+waiting.Dir()+`","what":"kept","status":"completed","why":"its guild does not have the report`)
	assert.Contains(t, got.out, `"what":"kept","status":"completed","why":"1 of its entries were not answered`)
	assert.NotContains(t, got.out, "ses-runs")
	assert.Equal(t, 4, strings.Count(got.out, "\n"))

	require.Equal(t, 0, call(t, "", "gc", "--older-than", "1h", "--unanswered").status)
	assert.NoDirExists(t, left.Dir())
	_, err := old.View()
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestDrainSaysWhatStays(t *testing.T) {
	w := newWorld(t)
	assert.Equal(t, ran{0, "", ""}, call(t, "", "drain-dlq", "--once"))
	w.unsent("ses-lost")
	got := call(t, "", "drain-dlq", "--once", "--db", w.db)
	assert.Equal(t, cli.ExitError, got.status)
	assert.Contains(t, got.out, "the end of session ses-lost ")
	assert.Contains(t, got.err, "1 report is still waiting")
}

// Another process that sends the reports hides nothing else that fails.
func TestDrainBesideAnother(t *testing.T) {
	w := newWorld(t)
	root := folder.Root(w.db)
	require.NoError(t, folder.MakeRoot(w.db))
	lock, err := disk.AcquireLock(t.Context(), filepath.Join(root, "drain-lock"), time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lock.Release()) })
	assert.Equal(t, ran{0, "", ""}, call(t, "", "drain-dlq", "--once", "--db", w.db))

	require.NoError(t, os.Symlink(w.db, filepath.Join(root, store.Name)))
	got := call(t, "", "drain-dlq", "--once", "--db", w.db)
	assert.Equal(t, cli.ExitError, got.status)
	assert.Contains(t, got.err, "it is no regular file: remove it")
}
