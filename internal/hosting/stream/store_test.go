package stream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/store"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

func TestMain(m *testing.M) {
	crash.Main(m, map[string]func() int{"session": session, "large": large50})
}

// in are the options for a session in a folder.
func in(dir string) TranscriptOptions {
	return TranscriptOptions{
		DB: store.In(dir, "ses-1"), Guild: filepath.Join(dir, "nexus.db"), SessionID: "ses-1",
		ShowEvery: 10 * time.Millisecond,
	}
}

func place(t *testing.T) TranscriptOptions {
	t.Helper()
	o := in(t.TempDir())
	o.Log = func(text string) { t.Log(text) }
	t.Cleanup(func() { require.NoError(t, o.DB.Close()) })
	return o
}

func opened(t *testing.T, o TranscriptOptions) *Transcript {
	t.Helper()
	require.NoError(t, o.DB.Begin(t.Context(), o.SessionID, o.Guild, nil))
	s, err := OpenTranscript(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// message is the i-th message of a session: in turn of the assistant, the user, and
// one that is not part of the conversation.
func message(i int64) Message {
	kind := []string{"assistant", "user", "system"}[i%3]
	m, ok := Parse(fmt.Appendf(nil, `{"type":%q,"n":%d,"message":{"content":"%s"}}`, kind, i, strings.Repeat("é", int(i)%50)))
	if !ok {
		panic("no message")
	}
	return m
}

// session hosts a session in a folder (argument 1): it appends messages without end, and
// prints the number of each that a reader was shown.
func session() int {
	o := in(os.Args[1])
	s, err := OpenTranscript(context.Background(), o)
	if err == nil {
		err = o.DB.Begin(context.Background(), o.SessionID, o.Guild, nil)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		for n := s.Health().Last + 1; ; n++ {
			s.Append(message(n))
		}
	}()
	for m, err := range ReadTranscript(context.Background(), o, 1, func() (int64, bool) { return 0, false }) {
		if err != nil {
			return 1
		}
		fmt.Println(m.N)
	}
	return 0
}

// fill appends the messages from..to.
func fill(t *testing.T, s *Transcript, from, to int64) {
	t.Helper()
	for i := from; i <= to; i++ {
		require.Equal(t, i, s.Append(message(i)))
	}
}

// requireStored checks that there are just the messages 1..n, each once.
func requireStored(t *testing.T, o TranscriptOptions, n int64) {
	t.Helper()
	next := int64(1)
	for m, err := range ReadEndedTranscript(t.Context(), o, 1) {
		require.NoError(t, err)
		require.Equal(t, next, m.N)
		require.Equal(t, string(message(next).Raw), string(m.Content))
		next++
	}
	require.Equal(t, n, next-1)
}

func TestStoreGoesOnCounting(t *testing.T) {
	o := place(t)
	s := opened(t, o)
	fill(t, s, 1, 1000)
	require.NoError(t, s.Flush(t.Context()))
	s.Close()
	assert.Equal(t, int64(1001), s.Append(message(1001)), "it comes after the end, and is lost")
	assert.Equal(t, int64(1), s.Health().Lost)
	requireStored(t, o, 1000)
	s = opened(t, o)
	fill(t, s, 1001, 1500)
	require.NoError(t, s.Flush(t.Context()))
	require.NoError(t, s.Show(t.Context()))
	s.Close()
	requireStored(t, o, 1500)
	assert.Equal(t, 1000, rowOf(t, o))
}

// rowOf is how many messages the guild's row has.
func rowOf(t *testing.T, o TranscriptOptions) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", o.Guild)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.QueryRow("SELECT json_array_length(content, '$.messages') FROM books_animator_transcripts WHERE id = 'ses-1'").Scan(&n))
	return n
}

// Readers get each message in order, however slow they are, and whenever they come.
func TestReadFollows(t *testing.T) {
	o := place(t)
	s := opened(t, o)
	const n = 2000
	var wait sync.WaitGroup
	var over atomic.Bool
	for from := range int64(4) {
		wait.Go(func() {
			next := from*100 + 1
			for m, err := range ReadTranscript(t.Context(), o, next, func() (int64, bool) { return n, over.Load() }) {
				assert.NoError(t, err)
				assert.Equal(t, next, m.N)
				next++
			}
			assert.Equal(t, int64(n+1), next)
		})
	}
	fill(t, s, 1, n)
	require.NoError(t, s.Flush(t.Context()))
	s.Close()
	over.Store(true)
	wait.Wait()
	for m, err := range ReadEndedTranscript(t.Context(), o, n/2) {
		require.NoError(t, err)
		require.Equal(t, int64(n/2), m.N, "a reader may stop")
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range ReadTranscript(ctx, o, n+1, func() (int64, bool) { return 0, false }) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// Whatever a reader was shown survives a kill at any time, and nothing is there twice.
func TestKilledAtAnyTime(t *testing.T) {
	for i := range long.Rounds(3, 30) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			o := place(t)
			child := crash.Command{Name: "session", Args: []string{filepath.Dir(o.Guild)}}.Start(t)
			shown := int64(0)
			for range 100 * (i + 1) {
				n, err := strconv.ParseInt(child.Line(t), 10, 64)
				require.NoError(t, err)
				shown = n
			}
			child.Kill(t)
			last, count, err := o.DB.Last(t.Context(), "ses-1")
			require.NoError(t, err)
			assert.GreaterOrEqual(t, last, shown)
			assert.Equal(t, last, count)
			requireStored(t, o, last)
		})
	}
}

// full has the databases of this process take so many pages; 0 are any number.
var full atomic.Int64

func limitPages(t *testing.T) {
	store.TestOnlyPages = func() int {
		if n := full.Load(); n > 0 {
			return int(n)
		}
		return 1 << 30
	}
	t.Cleanup(func() { store.TestOnlyPages = nil; full.Store(0) })
}

// While the disk takes nothing messages are held, and what does not fit is lost, counted
// and said. Others are stored once there is room.
func TestFullDisk(t *testing.T) {
	o := place(t)
	o.MemoryMax = 100 << 10
	limitPages(t)
	s := opened(t, o)
	full.Store(9)
	big, _ := Parse([]byte(`{"type":"user","message":{"content":"` + strings.Repeat("x", 40<<10) + `"}}`))
	for n := int64(1); n <= 5; n++ {
		require.Equal(t, n, s.Append(big))
	}
	require.ErrorContains(t, s.Flush(t.Context()), "2 messages are in memory alone")
	h := s.Health()
	assert.Equal(t, []int64{5, 0, 3}, []int64{h.Last, s.stored, h.Lost})
	assert.Contains(t, h.Trouble, "2 wait in memory")
	assert.Contains(t, h.Trouble, "3 messages are lost, since there was no room for them")
	full.Store(0)
	require.NoError(t, s.Flush(t.Context()))
	s.Close()
	var types []string
	o.After = s.Health().Last
	for m, err := range ReadEndedTranscript(t.Context(), o, 1) {
		require.NoError(t, err)
		types = append(types, m.Type)
	}
	assert.Equal(t, []string{"user", "user", "heartbeat", "heartbeat", "heartbeat"}, types)
	last, count, err := o.DB.Last(t.Context(), "ses-1")
	require.NoError(t, err)
	assert.Equal(t, last, count, "none that another one followed")
}

// A guild that holds its database locked holds nothing else up.
func TestGuildLocked(t *testing.T) {
	o := place(t)
	guild, err := sql.Open("sqlite", o.Guild)
	require.NoError(t, err)
	guild.SetMaxOpenConns(1)
	for _, q := range []string{"CREATE TABLE other (x)", "BEGIN EXCLUSIVE", "INSERT INTO other VALUES (1)"} {
		_, err = guild.Exec(q)
		require.NoError(t, err)
	}
	s := opened(t, o)
	fill(t, s, 1, 500)
	require.NoError(t, s.Flush(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, s.Show(ctx))
	assert.Contains(t, s.Health().Trouble, "the transcript cannot be written to the guild's table")
	requireStored(t, o, 500)
	_, err = guild.Exec("COMMIT")
	require.NoError(t, err)
	require.NoError(t, guild.Close())
	require.NoError(t, s.Show(t.Context()))
	assert.Empty(t, s.Health().Trouble)
	assert.Equal(t, 333, rowOf(t, o))
}

// An attempt that came too late for any work does not hide what an earlier one found.
func TestGuildTroubleStays(t *testing.T) {
	o := place(t)
	require.NoError(t, os.Mkdir(o.Guild, 0o700))
	s := opened(t, o)
	require.NoError(t, s.Flush(t.Context()))
	require.Error(t, s.Show(t.Context()))
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	require.Error(t, s.Show(late))
	assert.Contains(t, s.Health().Trouble, o.Guild+": it is a directory")
}

func TestNoDatabase(t *testing.T) {
	o := place(t)
	require.NoError(t, os.Mkdir(o.DB.Path(), 0o700))
	_, err := OpenTranscript(t.Context(), o)
	require.ErrorContains(t, err, o.DB.Path())
	assert.False(t, errors.Is(err, context.Canceled))
}
