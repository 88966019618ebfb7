package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	sqlite3 "modernc.org/sqlite/lib"

	"heartbeat/internal/disk"
)

func in(t *testing.T) *Store {
	t.Helper()
	return at(t, t.TempDir())
}

func at(t *testing.T, dir string) *Store {
	t.Helper()
	s := In(dir, "ses-1")
	s.SetLog(func(text string) { t.Log(text) })
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func message(n int64, kind, text string) Message {
	content, _ := json.Marshal(map[string]string{"type": kind, "text": text})
	return Message{N: n, At: time.Date(2026, 5, 1, 12, 0, 0, int(n)*1e6, time.UTC), Type: kind, Content: content}
}

func TestMessages(t *testing.T) {
	s := in(t)
	last, count, err := s.Last(t.Context(), "ses-1")
	require.NoError(t, err)
	assert.Zero(t, last+count)
	assert.NoFileExists(t, s.Path(), "who only looks makes nothing")

	all := []Message{message(1, "system", "s"), message(2, "assistant", "a"), message(4, "user", "u")}
	require.NoError(t, s.Append(t.Context(), "ses-1", all))
	require.NoError(t, s.Append(t.Context(), "ses-1", []Message{message(2, "assistant", "another")}), "what is there stays")
	require.NoError(t, s.Append(t.Context(), "ses-2", []Message{message(9, "user", "x")}))
	last, count, err = s.Last(t.Context(), "ses-1")
	require.NoError(t, err)
	assert.Equal(t, []int64{4, 3}, []int64{last, count})
	m, found, err := s.At(t.Context(), "ses-1", 3)
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, all[2], m)
	_, found, err = s.At(t.Context(), "ses-1", 5)
	require.NoError(t, err)
	assert.False(t, found)
	for upTo, want := range map[int64]string{
		0: `[]`, 1: `[]`, 3: `[` + string(all[1].Content) + `]`, 9: `[` + string(all[1].Content) + `,` + string(all[2].Content) + `]`,
	} {
		size, open, err := s.Conversation(t.Context(), "ses-1", upTo)
		require.NoError(t, err)
		for range 2 {
			text, err := io.ReadAll(open())
			require.NoError(t, err)
			assert.Equal(t, want, string(text))
		}
		assert.Equal(t, int64(len(want)), size)
	}
	info, err := os.Lstat(s.Path())
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
}

// A large message is in several rows, and in the guild's row by a stand-in.
func TestLarge(t *testing.T) {
	s := in(t)
	guild := filepath.Join(t.TempDir(), "nexus.db")
	require.NoError(t, s.Begin(t.Context(), "ses-1", guild, nil))
	all := []Message{message(1, "user", "é"), message(2, "assistant", strings.Repeat("é", 5<<20)), message(3, "user", strings.Repeat("x", 9<<20))}
	require.NoError(t, s.Append(t.Context(), "ses-1", all))
	want := []json.RawMessage{all[0].Content, all[1].Content, all[2].Content}
	for _, m := range all {
		got, found, err := s.At(t.Context(), "ses-1", m.N)
		require.NoError(t, err)
		assert.True(t, found && string(got.Content) == string(m.Content), m.N)
	}
	size, open, err := s.Conversation(t.Context(), "ses-1", 3)
	require.NoError(t, err)
	text, err := io.ReadAll(open())
	require.NoError(t, err)
	assert.Len(t, text, int(size))
	var messages []json.RawMessage
	require.NoError(t, json.Unmarshal(text, &messages))
	assert.True(t, reflect.DeepEqual(want, messages))

	waiting, err := s.Waiting(t.Context(), "ses-1")
	require.NoError(t, err)
	assert.EqualValues(t, 3, waiting)
	for _, i := range []int{1, 2} {
		want[i] = fmt.Appendf(nil, `{"type":"heartbeat","subtype":"cut","was":"","bytes":%d}`, len(all[i].Content))
	}
	for range 2 { // it is made, and then another one
		require.NoError(t, s.Show(t.Context(), "ses-1", guild))
		row, err := Row(t.Context(), guild, "ses-1")
		require.NoError(t, err)
		assert.True(t, reflect.DeepEqual(want, row))
	}
	waiting, err = s.Waiting(t.Context(), "ses-1")
	require.NoError(t, err)
	assert.Zero(t, waiting)
	ids, err := Rows(t.Context(), guild, "ses")
	require.NoError(t, err)
	assert.Equal(t, []string{"ses-1"}, ids)
}

// A full disk passes, whatever the size of what it does not take.
func TestFull(t *testing.T) {
	s := in(t)
	require.NoError(t, s.Append(t.Context(), "ses-1", []Message{message(1, "user", "u")}))
	t.Cleanup(func() { TestOnlyPages = nil })
	TestOnlyPages = func() int { return 1 }
	for n, size := range []int{100 << 10, 9 << 20} {
		err := s.Append(t.Context(), "ses-1", []Message{message(int64(n)+2, "user", strings.Repeat("x", size))})
		require.ErrorContains(t, err, "full")
		assert.True(t, Passes(err))
	}
	last, _, err := s.Last(t.Context(), "ses-1")
	require.NoError(t, err)
	assert.EqualValues(t, 1, last)
	assert.False(t, Passes(fs.ErrNotExist))
	assert.ErrorIs(t, s.wrap(noRoom{errors.New("no room")}), unix.ENOSPC, "no room for what is shared")
}

// noRoom is the error with which SQLite tells that there is no room for what its users share.
type noRoom struct{ error }

func (noRoom) Code() int { return sqlite3.SQLITE_IOERR_SHMSIZE }

// A session has one end, whoever says what it was.
func TestOneEnd(t *testing.T) {
	s := in(t)
	ends := make(chan Report, 8)
	var wait sync.WaitGroup
	for i := range cap(ends) {
		wait.Go(func() {
			other := at(t, filepath.Dir(s.Path()))
			r, err := other.Decide(t.Context(), Report{Session: "ses-1", Kind: Record, Status: "s" + strconv.Itoa(i), Head: "{}"}, nil)
			assert.NoError(t, err)
			ends <- r
		})
	}
	wait.Wait()
	first := <-ends
	for range cap(ends) - 1 {
		assert.Equal(t, first, <-ends)
	}
	assert.Equal(t, Waiting, first.State)
}

func TestReports(t *testing.T) {
	s := in(t)
	require.NoError(t, s.Begin(t.Context(), "ses-1", "/g/nexus.db", nil))
	_, found, err := s.Report(t.Context(), "ses-1", Record)
	require.NoError(t, err)
	assert.False(t, found)
	require.NoError(t, s.Append(t.Context(), "ses-1", []Message{message(1, "user", "u"), message(2, "user", "later")}))
	record, err := s.Decide(t.Context(), Report{Session: "ses-1", Kind: Record, Guild: "http://g", Status: "failed", Error: "why", Head: `{"a":1}`, Last: 1}, nil)
	require.NoError(t, err)
	running, err := s.Decide(t.Context(), Report{Session: "ses-1", Kind: Running, Head: `{"b":1}`}, nil)
	require.NoError(t, err)
	unsent, err := s.Unsent(t.Context())
	require.NoError(t, err)
	require.Len(t, unsent, 2)
	assert.Equal(t, []Kind{Running, Record}, []Kind{unsent[0].Kind, unsent[1].Kind})
	for r, want := range map[*Report]string{&record: `{"a":1,"transcript":[` + string(message(1, "user", "u").Content) + `]}`, &running: `{"b":1}`} {
		size, open, err := s.Body(t.Context(), *r, "")
		require.NoError(t, err)
		text, err := io.ReadAll(open())
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
		assert.Equal(t, int64(len(want)), size)
	}
	record.State, record.Code, record.Reason, record.File = Refused, 403, "no", true
	require.NoError(t, s.SetReportState(t.Context(), record))
	got, found, err := s.Report(t.Context(), "ses-1", Record)
	require.NoError(t, err)
	assert.True(t, found)
	got.Tried = record.Tried
	assert.Equal(t, record, got)
	record.State = Sent
	require.NoError(t, s.SetReportState(t.Context(), record))
	unsent, err = s.Unsent(t.Context())
	require.NoError(t, err)
	assert.Empty(t, unsent, "the running report is of no use any more")
	require.NoError(t, s.Forget(t.Context(), "ses-1"))
	_, found, err = s.Report(t.Context(), "ses-1", Record)
	require.NoError(t, err)
	assert.False(t, found)
}

// The guild's row is written from the messages, in whatever state its database is.
func TestShow(t *testing.T) {
	s := in(t)
	guild := filepath.Join(t.TempDir(), "nexus's ?#%.db")
	require.NoError(t, s.Begin(t.Context(), "ses-1", guild, nil))
	require.NoError(t, s.Append(t.Context(), "ses-1", []Message{message(1, "system", "s")}))
	behind := func() int {
		all, err := s.Behind(t.Context(), "")
		require.NoError(t, err)
		return len(all)
	}
	assert.Zero(t, behind(), "the guild's table has none of these")
	require.NoError(t, s.Append(t.Context(), "ses-1", []Message{message(2, "user", "u")}))
	assert.Equal(t, 1, behind())

	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "x"))
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.NoError(t, os.Mkdir(guild, 0o700))
	require.ErrorContains(t, s.Show(t.Context(), "ses-1", guild), "it is a directory and no database")
	require.NoError(t, os.Remove(guild))
	require.NoError(t, os.WriteFile(guild, []byte("these bytes are no database at all"), 0o600))
	require.Error(t, s.Show(t.Context(), "ses-1", guild))
	text, err := os.ReadFile(guild)
	require.NoError(t, err)
	assert.Equal(t, "these bytes are no database at all", string(text), "it is somebody's")
	assert.Equal(t, 1, behind())
	require.NoError(t, os.Remove(guild))
	require.NoError(t, s.Show(t.Context(), "ses-1", guild))
	assert.Zero(t, behind())

	pool, err := connectGuild(t.Context(), guild, "rw")
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	row := ""
	require.NoError(t, pool.QueryRow("SELECT content FROM books_animator_transcripts WHERE id = 'ses-1'").Scan(&row))
	assert.Equal(t, `{"id":"ses-1","messages":[`+string(message(2, "user", "u").Content)+`]}`, row)
}

// What an older release has kept is copied once, however often that is tried.
func TestAdopt(t *testing.T) {
	s := in(t)
	guild, spool := filepath.Join(t.TempDir(), "nexus.db"), filepath.Join(t.TempDir(), "messages.spool")
	require.NoError(t, makeFile(guild))
	pool, err := connectGuild(t.Context(), guild, "rw")
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	_, err = pool.Exec(`CREATE TABLE heartbeat_messages (session_id TEXT, n INTEGER, at TEXT, type TEXT, content TEXT);
INSERT INTO heartbeat_messages VALUES ('ses-0', 7, '2026-05-01T12:00:00.000Z', 'user', '{"old":1}')`)
	require.NoError(t, err)
	spools := func(session string) {
		text := fmt.Sprintf(`{"session":%q,"after":0,"unsure":false}`+"\n", session)
		for n := range 600 {
			text += fmt.Sprintf(`{"n":%d,"at":"2026-05-01T12:00:00.000Z","type":"user","content":{"n":%d}}`+"\n", n+8, n)
		}
		require.NoError(t, os.WriteFile(spool, []byte(text+`{"n":601,"at":"2026-05`), 0o600))
	}
	require.NoError(t, s.Adopt(t.Context(), "ses-0", guild, spool), "there need be no spool")
	spools("ses-2")
	require.ErrorContains(t, s.Adopt(t.Context(), "ses-0", guild, spool), `it belongs to session "ses-2"`)
	spools("ses-0")
	for range 2 {
		require.NoError(t, s.Adopt(t.Context(), "ses-0", guild, spool))
	}
	m, found, err := s.At(t.Context(), "ses-0", 1)
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, Message{N: 7, At: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Type: "user", Content: json.RawMessage(`{"old":1}`)}, m)
	last, count, err := s.Last(t.Context(), "ses-0")
	require.NoError(t, err)
	assert.Equal(t, []int64{607, 601}, []int64{last, count})
	require.NoError(t, os.Remove(spool))
	require.NoError(t, syscall.Mkfifo(spool, 0o600))
	require.Error(t, s.Adopt(t.Context(), "ses-0", guild, spool), "it is not waited for")
}

// A file that is no database, or a damaged one, is set aside, and the session goes on.
func TestDamaged(t *testing.T) {
	s := in(t)
	require.NoError(t, os.WriteFile(s.Path(), []byte("this is no database, whoever wrote it"), 0o600))
	require.NoError(t, s.Append(t.Context(), "ses-1", []Message{message(1, "user", "u")}))
	aside, err := filepath.Glob(s.Path() + ".damaged-*Z")
	require.NoError(t, err)
	require.Len(t, aside, 1)
	text, err := os.ReadFile(aside[0])
	require.NoError(t, err)
	assert.Equal(t, "this is no database, whoever wrote it", string(text))
}

// A database that is removed while it is in use is made again, with what it had of the
// session.
func TestRemoved(t *testing.T) {
	s := in(t)
	dir := filepath.Dir(s.Path())
	require.NoError(t, s.Append(t.Context(), "ses-1", []Message{message(1, "user", "u")}))
	record, err := s.Decide(t.Context(), Report{Session: "ses-1", Kind: Record, Status: "failed", Head: "{}"}, nil)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, s.Append(t.Context(), "ses-1", []Message{message(2, "user", "more")}))
	other := at(t, dir)
	_, count, err := other.Last(t.Context(), "ses-1")
	require.NoError(t, err)
	assert.Equal(t, int64(2), count)
	got, found, err := other.Report(t.Context(), "ses-1", Record)
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, record, got)
}

// So is one of which only a part is removed: its users still share the rest.
func TestRemovedInPart(t *testing.T) {
	for _, part := range []string{"", "-wal", "-shm"} {
		s := in(t)
		dir := filepath.Dir(s.Path())
		require.NoError(t, s.Begin(t.Context(), "ses-1", "/g", Parts{"config": "{}"}))
		require.NoError(t, os.Remove(s.Path()+part))
		for n := range int64(20) {
			other := In(dir, "ses-other")
			require.NoError(t, other.Append(t.Context(), "ses-other", []Message{message(n+1, "user", "u")}), part)
			require.NoError(t, s.Append(t.Context(), "ses-1", []Message{message(n+1, "user", "u")}), part)
			require.NoError(t, other.Close())
		}
		for _, id := range []string{"ses-1", "ses-other"} {
			_, count, err := at(t, dir).Last(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, int64(20), count, "%s without %q", id, part)
		}
		parts, err := at(t, dir).Parts(t.Context(), "ses-1")
		require.NoError(t, err)
		assert.Equal(t, Parts{"config": "{}"}, parts, part)
	}
}

func TestForeign(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, nil, 0o600))
	for name, plant := range map[string]func(path string) error{
		"link":      func(path string) error { return os.Symlink(secret, path) },
		"hard link": func(path string) error { return os.Link(secret, path) },
		"fifo":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"wide":      func(path string) error { _ = os.WriteFile(path, nil, 0o600); return os.Chmod(path, 0o666) },
	} {
		s := at(t, filepath.Dir(secret))
		require.NoError(t, plant(s.Path()), name)
		err := s.Append(t.Context(), "ses-1", []Message{message(1, "user", "u")})
		require.ErrorIs(t, err, disk.ErrForeign, name)
		assert.ErrorContains(t, err, s.Path())
		require.NoError(t, os.Remove(s.Path()))
	}
	info, err := os.Stat(secret)
	require.NoError(t, err)
	assert.Zero(t, info.Size())
}

func TestNewer(t *testing.T) {
	s := in(t)
	require.NoError(t, s.Begin(t.Context(), "ses-1", "/g", nil))
	pool, _, err := s.open(t.Context(), true)
	require.NoError(t, err)
	_, err = pool.Exec("PRAGMA user_version = 99")
	require.NoError(t, err)
	require.ErrorIs(t, at(t, filepath.Dir(s.Path())).Begin(t.Context(), "ses-2", "/g", nil), ErrNewer)
}

// The record says what the report says that counts, or nothing new.
func TestRecordIsDecidedWithTheReport(t *testing.T) {
	s := at(t, t.TempDir())
	require.NoError(t, s.Begin(t.Context(), "ses-1", "/g", Parts{"config": "{}", "outcome": "first"}))
	for _, status := range []string{"completed", "failed"} {
		counts, err := s.Decide(t.Context(), Report{Session: "ses-1", Kind: Record, Status: status, Head: "{}"}, Parts{"outcome": status})
		require.NoError(t, err)
		assert.Equal(t, "completed", counts.Status)
		parts, err := s.Parts(t.Context(), "ses-1")
		require.NoError(t, err)
		assert.Equal(t, Parts{"config": "{}", "outcome": "completed"}, parts)
	}
	have, err := s.Put(t.Context(), "ses-1", Parts{"facts": "more"}, false)
	require.NoError(t, err)
	assert.Equal(t, 3, have)
	require.NoError(t, s.Forget(t.Context(), "ses-1"))
	parts, err := s.Parts(t.Context(), "ses-1")
	require.NoError(t, err)
	assert.Empty(t, parts)
}

// What a full disk has no room to share is read all the same, unless others may write it.
func TestReadAlone(t *testing.T) {
	s := at(t, t.TempDir())
	require.NoError(t, s.Begin(t.Context(), "ses-1", "/g", Parts{"config": "{}"}))
	read := func(why error) (n int, err error) {
		err = s.readAlone(func(pool *sql.DB) error { return pool.QueryRow("SELECT count(*) FROM states").Scan(&n) }, why)
		return n, err
	}
	full := errors.New("full")
	_, err := read(full)
	require.ErrorIs(t, err, full, "it is open")
	require.NoError(t, s.Close())
	n, err := read(full)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
}

// What can be read of a damaged database goes along: its sessions may have nobody else who
// knows of them.
func TestDamagedInPart(t *testing.T) {
	s := in(t)
	const dead, reported = "ses-dead", "ses-reported"
	for _, id := range []string{dead, reported} {
		require.NoError(t, s.Begin(t.Context(), id, "/g", Parts{"config": "{}", "facts": "{}", "outcome": id}))
	}
	for n := range int64(300) {
		require.NoError(t, s.Append(t.Context(), dead, []Message{message(n+1, "user", strings.Repeat("x", 3000))}))
	}
	require.NoError(t, s.Append(t.Context(), reported, []Message{message(1, "user", "u")}))
	r, err := s.Decide(t.Context(), Report{Session: reported, Kind: Record, Status: "failed", Head: "{}"}, nil)
	require.NoError(t, err)
	r.State = Sent
	require.NoError(t, s.SetReportState(t.Context(), r))
	require.NoError(t, s.Close())

	damage(t, s.Path())
	other := at(t, filepath.Dir(s.Path()))
	require.NoError(t, other.write(t.Context(), func(tx *sql.Tx) error { // which meets the damage
		_, err := tx.Exec(`UPDATE messages SET type = 'user'`)
		return err
	}))
	_, count, err := other.Last(t.Context(), dead)
	require.NoError(t, err)
	assert.Greater(t, count, int64(200), "but for those on the damaged pages")
	for _, n := range []int64{1, 300} {
		m, found, err := other.At(t.Context(), dead, n)
		require.NoError(t, err)
		assert.True(t, found && m.N == n)
	}
	_, count, err = other.Last(t.Context(), reported)
	require.NoError(t, err)
	assert.Zero(t, count, "its guild has the whole")
	for _, id := range []string{dead, reported} {
		parts, err := other.Parts(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, Parts{"config": "{}", "facts": "{}", "outcome": id}, parts)
	}
	again, found, err := other.Report(t.Context(), reported, Record)
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, Sent, again.State)
}

// A database that turns out to be damaged amid a conversation is read again from where its reader is.
func TestDamagedWhileItIsRead(t *testing.T) {
	s := in(t)
	require.NoError(t, s.Begin(t.Context(), "ses-1", "/g", nil))
	for n := range int64(300) {
		require.NoError(t, s.Append(t.Context(), "ses-1", []Message{message(n+1, "user", strings.Repeat("x", 3000)+strconv.FormatInt(n, 10))}))
	}
	_, open, err := s.Conversation(t.Context(), "ses-1", 300)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	damage(t, s.Path())

	text, err := io.ReadAll(open())
	require.NoError(t, err)
	var messages []struct{ Text string }
	require.NoError(t, json.Unmarshal(text, &messages))
	_, count, err := s.Last(t.Context(), "ses-1")
	require.NoError(t, err)
	assert.Less(t, count, int64(300), "it was damaged")
	assert.Len(t, messages, int(count))
	seen := map[string]bool{}
	for _, m := range messages {
		assert.False(t, seen[m.Text], "twice: %s", strings.TrimLeft(m.Text, "x"))
		seen[m.Text] = true
	}
}

// damage overwrites pages from the middle of a database on, whatever they are of, but not the last ones.
func damage(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("?", 40<<10)), info.Size()/2&^4095)
	require.NoError(t, errors.Join(err, f.Close()))
}
