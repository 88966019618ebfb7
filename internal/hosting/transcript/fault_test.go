package transcript

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/testing/crash"
)

// open opens the database as another program does, with one connection.
func open(t *testing.T, o Options) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", o.DB+"?_pragma=busy_timeout(60000)")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func run(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := db.ExecContext(limited(t), s)
		require.NoError(t, err, s)
	}
}

// requireRead checks that a reader gets the messages from..to at once.
func requireRead(t *testing.T, s *Store, from, to int64) {
	t.Helper()
	for m, err := range s.Read(limited(t), from) {
		require.NoError(t, err)
		require.Equal(t, from, m.N)
		require.Equal(t, string(message(from).Raw), string(m.Content))
		if from++; from > to {
			return
		}
	}
	require.Fail(t, "the reader ended")
}

// eventually waits for what the writer does in its own time.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, time.Millisecond)
}

func TestTheDatabaseIsInTheWay(t *testing.T) {
	garbage := strings.Repeat("this is no database\n", 1000)
	tests := map[string]struct {
		before func(t *testing.T, o Options) (repair func())
		says   string
	}{
		"locked": {func(t *testing.T, o Options) func() {
			other := open(t, o)
			run(t, other, "BEGIN EXCLUSIVE", "CREATE TABLE other (a)")
			return func() { run(t, other, "COMMIT") }
		}, "database is locked"},
		"a directory": {func(t *testing.T, o Options) func() {
			require.NoError(t, os.Mkdir(o.DB, 0o700))
			return func() { require.NoError(t, os.Remove(o.DB)) }
		}, "directory"},
		"no database": {func(t *testing.T, o Options) func() {
			require.NoError(t, os.WriteFile(o.DB, []byte(garbage), 0o600))
			return func() {
				b, err := os.ReadFile(o.DB)
				require.NoError(t, err)
				require.Equal(t, garbage, string(b), "it is left alone")
				require.NoError(t, os.Remove(o.DB))
			}
		}, "not a database"},
		"a FIFO": {func(t *testing.T, o Options) func() {
			require.NoError(t, unix.Mkfifo(o.DB, 0o600))
			return func() { require.NoError(t, os.Remove(o.DB)) }
		}, "regular file"},
		"a link to nothing": {func(t *testing.T, o Options) func() {
			require.NoError(t, os.Symlink("nowhere", o.DB))
			return func() { require.NoError(t, os.Remove(o.DB)) }
		}, "symbolic link"},
		"another table of the same name": {func(t *testing.T, o Options) func() {
			other := open(t, o)
			run(t, other, "CREATE TABLE heartbeat_messages (a, b)")
			return func() { run(t, other, "DROP TABLE heartbeat_messages") }
		}, "column"},
		"a view of the same name": {func(t *testing.T, o Options) func() {
			other := open(t, o)
			run(t, other, "CREATE VIEW heartbeat_messages AS SELECT 1 AS session_id, 2 AS n, '' AS at, '' AS type, '' AS content")
			return func() { run(t, other, "DROP VIEW heartbeat_messages") }
		}, "view"},
		"a trigger that refuses": {func(t *testing.T, o Options) func() {
			other := open(t, o)
			run(t, other, createMessages, "CREATE TRIGGER no BEFORE INSERT ON heartbeat_messages BEGIN SELECT RAISE(FAIL, 'not here'); END")
			return func() { run(t, other, "DROP TRIGGER no") }
		}, "not here"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := place(t)
			repair := tc.before(t, o)
			s := Open(o)
			fill(t, s, 1, 50)
			requireRead(t, s, 1, 50)
			eventually(t, func() bool { return s.Health().Trouble != "" })
			health := s.Health()
			assert.Contains(t, health.Trouble, tc.says)
			assert.NotContains(t, health.Trouble, "\n")
			assert.Equal(t, Health{Last: 50, Trouble: health.Trouble}, health)
			soon, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			assert.ErrorIs(t, s.Close(soon), ErrWaiting)

			s = Open(o)
			fill(t, s, 51, 60)
			repair()
			eventually(t, func() bool { return s.Health().Stored == 60 })
			fill(t, s, 61, 70)
			closeIt(t, s)
			health = s.Health()
			assert.Equal(t, Health{Last: 70, Stored: 70, Past: health.Past}, health)
			requireStored(t, o, 70)
		})
	}
}

func TestTheGuildsTableIsInTheWay(t *testing.T) {
	o := place(t)
	other := open(t, o)
	run(t, other, "CREATE TABLE books_animator_transcripts (id TEXT, body TEXT)")
	s := Open(o)
	fill(t, s, 1, 10)
	eventually(t, func() bool { return s.Health().Trouble != "" })
	err := s.Close(limited(t))
	require.Error(t, err)
	assert.NotErrorIs(t, err, ErrWaiting)
	assert.EqualValues(t, 10, s.Health().Stored)
	run(t, other, "DROP TABLE books_animator_transcripts")
	require.NoError(t, Recover(limited(t), o))
	requireStored(t, o, 10)
}

func TestTheDatabaseGoesAway(t *testing.T) {
	aside := func(o Options) error {
		for _, name := range []string{"", "-wal", "-shm"} {
			if err := os.Rename(o.DB+name, o.DB+".old"+name); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
		return nil
	}
	tests := map[string]func(o Options) error{
		"removed":            func(o Options) error { return os.Remove(o.DB) },
		"removed with files": func(o Options) error { return aside(o) },
		"replaced": func(o Options) error {
			if err := aside(o); err != nil {
				return err
			}
			return os.WriteFile(o.DB, nil, 0o600)
		},
	}
	for name, take := range tests {
		t.Run(name, func(t *testing.T) {
			o := place(t)
			s := Open(o)
			fill(t, s, 1, 20)
			eventually(t, func() bool { return s.Health().Stored == 20 })
			require.NoError(t, take(o))
			fill(t, s, 21, 40)
			eventually(t, func() bool { return s.Health().Stored == 40 })
			closeIt(t, s)
			requireStored(t, o, 40)
		})
	}
}

// TestNumbersWithoutTheDatabase starts a session that went on before, while nobody
// can tell how far it had come.
func TestNumbersWithoutTheDatabase(t *testing.T) {
	o := place(t)
	s := Open(o)
	fill(t, s, 1, 10)
	closeIt(t, s)
	other := open(t, o)
	run(t, other, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "CREATE TABLE other (a)")

	s = Open(o)
	for i := range int64(5) {
		assert.Equal(t, i+1, s.Append(message(11+i)), "the best guess")
	}
	soon, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Close(soon), ErrWaiting)
	run(t, other, "COMMIT")
	require.NoError(t, other.Close())
	require.NoError(t, Recover(limited(t), o))
	requireStored(t, o, 15)

	o.After = 15
	s = Open(o)
	fill(t, s, 16, 20)
	closeIt(t, s)
	requireStored(t, o, 20)
}

func TestNumbersAreSettledOnce(t *testing.T) {
	o := place(t)
	s := Open(o)
	fill(t, s, 1, 10)
	closeIt(t, s)
	sp, err := newSpool(o.Spool, spoolHead{Session: o.SessionID, Unsure: true})
	require.NoError(t, err)
	at := time.Now()
	for i := range int64(3) {
		_, err := sp.append(Stored{N: i + 1, At: at, Type: message(11 + i).Type, Content: message(11 + i).Raw})
		require.NoError(t, err)
	}
	require.NoError(t, sp.close())
	left, err := os.ReadFile(o.Spool)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, os.WriteFile(o.Spool, left, 0o600), "as after a kill before its removal")
		require.NoError(t, Recover(limited(t), o))
		requireStored(t, o, 13)
	}
}

func TestALongSessionIsReadFromTheDatabase(t *testing.T) {
	o := place(t)
	o.Keep = 20 << 10
	s := Open(o)
	for n := int64(1); n <= 1000; n += 100 {
		fill(t, s, n, n+99)
		eventually(t, func() bool { return s.Health().Stored == n+99 })
	}
	info, err := os.Stat(o.Spool)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(60<<10))
	requireRead(t, s, 1, 1000)
	requireRead(t, s, 700, 1000)
	closeIt(t, s)
	requireStored(t, o, 1000)
}

func TestMessagesAreLostOnlyWithoutRoom(t *testing.T) {
	o := place(t)
	require.NoError(t, os.Mkdir(o.DB, 0o700))
	o.SpoolMax, o.MemoryMax = 10_000, 5_000
	s := Open(o)
	big := func() stream.Message {
		m, ok := stream.Parse([]byte(`{"type":"user","text":"` + strings.Repeat("x", 900) + `"}`))
		require.True(t, ok)
		return m
	}
	for range 30 {
		s.Append(big())
	}
	health := s.Health()
	assert.EqualValues(t, 30, health.Last)
	assert.Positive(t, health.Lost)
	assert.Less(t, health.Lost, int64(20))
	assert.Contains(t, health.Trouble, "lost")
	assert.Contains(t, health.Trouble, "10000 bytes")
	kinds := map[string]int64{}
	for m, err := range s.Read(limited(t), 1) {
		require.NoError(t, err)
		kinds[m.Type]++
		if m.N == 30 {
			break
		}
	}
	assert.Equal(t, map[string]int64{"user": 30 - health.Lost, stream.TypeHost: health.Lost}, kinds)

	require.NoError(t, os.Remove(o.DB))
	closeIt(t, s)
	db, err := connect(limited(t), o.DB, "ro")
	require.NoError(t, err)
	var stored int64
	require.NoError(t, db.conn.QueryRowContext(limited(t), "SELECT count(*) FROM heartbeat_messages").Scan(&stored))
	assert.EqualValues(t, 30, stored)
	require.NoError(t, db.close())
}

func TestTheSpoolIsInTheWay(t *testing.T) {
	tests := map[string]func(t *testing.T, o *Options){
		"no folder":   func(t *testing.T, o *Options) { o.Spool = o.Spool + "/none/spool" },
		"a directory": func(t *testing.T, o *Options) { require.NoError(t, os.Mkdir(o.Spool, 0o700)) },
		"a link":      func(t *testing.T, o *Options) { require.NoError(t, os.Symlink(o.DB, o.Spool)) },
		"another session's": func(t *testing.T, o *Options) {
			require.NoError(t, os.WriteFile(o.Spool, []byte(`{"session":"x"}`+"\n"), 0o600))
		},
		"garbage": func(t *testing.T, o *Options) { require.NoError(t, os.WriteFile(o.Spool, []byte("garbage\n"), 0o600)) },
		"a full disk": func(t *testing.T, o *Options) {
			crash.Observe(t, crash.FailFrom(4, unix.ENOSPC, crash.NeedsSpace...))
			require.NoError(t, os.WriteFile(o.DB, nil, 0o600))
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			o := place(t)
			spoil(t, &o)
			s := Open(o)
			fill(t, s, 1, 30)
			requireRead(t, s, 1, 30)
			eventually(t, func() bool { return s.Health().Stored == 30 })
			assert.Contains(t, s.Health().Trouble, "spool")
			fill(t, s, 31, 40)
			_ = s.Close(limited(t)) // that what is in the way cannot be removed is no matter
			requireRead(t, s, 1, 40)
			requireStored(t, o, 40)
		})
	}
}
