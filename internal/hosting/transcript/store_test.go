package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/stream"
)

// place makes options for a session in a folder of its own.
func place(t *testing.T) Options {
	t.Helper()
	return in(t.TempDir())
}

// in are the options for a session in a folder.
func in(dir string) Options {
	return Options{
		DB: filepath.Join(dir, "nexus.db"), Spool: filepath.Join(dir, "messages.spool"), SessionID: "ses-1",
		Log: func(s string) { fmt.Fprintln(os.Stderr, s) },
	}
}

// message is the i-th message of a session: in turn of the assistant, the user, and
// one that is not part of the conversation.
func message(i int64) stream.Message {
	kind := []string{"assistant", "user", "system"}[i%3]
	m, ok := stream.Parse(fmt.Appendf(nil, `{"type":%q,"n":%d,"message":{"content":"%s"}}`, kind, i, strings.Repeat("é", int(i)%50)))
	if !ok {
		panic("no message")
	}
	return m
}

// fill appends the messages from..to.
func fill(t *testing.T, s *Store, from, to int64) {
	t.Helper()
	for i := from; i <= to; i++ {
		require.Equal(t, i, s.Append(message(i)))
	}
}

func closeIt(t *testing.T, s *Store) {
	t.Helper()
	require.NoError(t, s.Close(limited(t)))
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// requireStored checks that the database has just the messages 1..n, each once, and
// the guild's row of them.
func requireStored(t *testing.T, o Options, n int64) {
	t.Helper()
	db, err := connect(limited(t), o.DB, "ro")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.close()) }()
	rows, err := db.conn.QueryContext(limited(t), `SELECT n, at, type, content FROM heartbeat_messages WHERE session_id = ? ORDER BY n`, o.SessionID)
	require.NoError(t, err)
	var all []string
	next := int64(1)
	for rows.Next() {
		var m Stored
		var at, content string
		require.NoError(t, rows.Scan(&m.N, &at, &m.Type, &content))
		want := message(next)
		require.Equal(t, Stored{N: next, Type: want.Type}, m)
		require.Equal(t, string(want.Raw), content)
		_, err := time.Parse(atLayout, at)
		require.NoError(t, err)
		if want.InTranscript() {
			all = append(all, content)
		}
		next++
	}
	require.NoError(t, rows.Err())
	require.Equal(t, n, next-1)
	if len(all) == 0 {
		return
	}
	var row string
	require.NoError(t, db.conn.QueryRowContext(limited(t), `SELECT content FROM books_animator_transcripts WHERE id = ?`, o.SessionID).Scan(&row))
	require.True(t, row == `{"id":"`+o.SessionID+`","messages":[`+strings.Join(all, ",")+`]}`, "the guild's row begins with %.200s", row)
}

func TestStore(t *testing.T) {
	o := place(t)
	s := Open(o)
	fill(t, s, 1, 700)
	assert.EqualValues(t, 700, s.Last())
	closeIt(t, s)
	assert.Equal(t, Health{Last: 700, Stored: 700}, s.Health())
	requireStored(t, o, 700)
	info, err := os.Stat(o.DB)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	assert.NoFileExists(t, o.Spool)
}

func TestStoreGoesOnCounting(t *testing.T) {
	o := place(t)
	for round := range int64(4) {
		s := Open(o)
		fill(t, s, round*10+1, round*10+10)
		closeIt(t, s)
	}
	requireStored(t, o, 40)
}

func TestReadFollows(t *testing.T) {
	o := place(t)
	s := Open(o)
	const messages, readers = 300, 5
	results := make(chan error, readers)
	for r := range readers {
		go func() {
			next := int64(r*10 + 1)
			for m, err := range s.Read(limited(t), next) {
				if err != nil || m.N != next || string(m.Content) != string(message(next).Raw) {
					results <- fmt.Errorf("reader %d: message %d instead of %d: %w", r, m.N, next, err)
					return
				}
				next++
			}
			if next != messages+1 {
				results <- fmt.Errorf("reader %d: %d messages", r, next-1)
				return
			}
			results <- nil
		}()
	}
	fill(t, s, 1, messages)
	closeIt(t, s)
	for range readers {
		assert.NoError(t, <-results)
	}
	next := int64(1)
	for m, err := range ReadEnded(limited(t), o, 1) {
		require.NoError(t, err)
		require.Equal(t, next, m.N)
		require.Equal(t, string(message(next).Raw), string(m.Content))
		next++
	}
	assert.EqualValues(t, messages+1, next)
}

func TestReadEndsWithItsContext(t *testing.T) {
	s := Open(place(t))
	defer closeIt(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	fill(t, s, 1, 1)
	n := 0
	for m, err := range s.Read(ctx, 1) {
		if n++; n == 1 {
			require.NoError(t, err)
			require.EqualValues(t, 1, m.N)
			cancel()
		} else {
			assert.Equal(t, context.Canceled, err)
		}
	}
	assert.Equal(t, 2, n)
}

func TestTranscript(t *testing.T) {
	o := place(t)
	s := Open(o)
	var b bytes.Buffer
	require.NoError(t, s.Transcript(limited(t), &b))
	assert.Equal(t, "[]", b.String())
	fill(t, s, 1, 10)
	check := func() {
		t.Helper()
		var b bytes.Buffer
		require.NoError(t, s.Transcript(limited(t), &b))
		var all []struct{ N int64 }
		require.NoError(t, json.Unmarshal(b.Bytes(), &all))
		var numbers []int64
		for _, m := range all {
			numbers = append(numbers, m.N)
		}
		assert.Equal(t, []int64{1, 3, 4, 6, 7, 9, 10}, numbers)
	}
	check()
	closeIt(t, s)
	check()
}

func TestRecover(t *testing.T) {
	o := place(t)
	require.NoError(t, Recover(limited(t), o), "nothing there")
	sp, err := newSpool(o.Spool, spoolHead{Session: o.SessionID})
	require.NoError(t, err)
	for i := range int64(5) {
		_, err := sp.append(Stored{N: i + 1, At: time.Now(), Type: message(i + 1).Type, Content: message(i + 1).Raw})
		require.NoError(t, err)
	}
	require.NoError(t, sp.close())
	f, err := os.OpenFile(o.Spool, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"n":6,"at":"2026-`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for range 2 {
		require.NoError(t, Recover(limited(t), o))
		requireStored(t, o, 5)
	}
}
