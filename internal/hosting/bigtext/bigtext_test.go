package bigtext_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"heartbeat/internal/hosting/bigtext"
)

func open(t *testing.T, path string) *sql.Conn {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(0)")
	require.NoError(t, err)
	conn, err := pool.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, errors.Join(conn.Close(), pool.Close())) })
	return conn
}

const insert = `INSERT INTO t (n, name, content) VALUES (?2, ?3, ?1)`

func add(ctx context.Context, conn *sql.Conn, n int64, name, text string) error {
	return bigtext.On(conn, func(h *bigtext.Handle) error {
		b, free, err := h.Room(int64(len(text)))
		if err != nil {
			return err
		}
		defer free()
		copy(b, text)
		return h.Exec(ctx, insert, b, n, name)
	})
}

func TestTexts(t *testing.T) {
	conn := open(t, filepath.Join(t.TempDir(), "db"))
	_, err := conn.ExecContext(t.Context(), "CREATE TABLE t (n INTEGER PRIMARY KEY, name TEXT, content TEXT NOT NULL)")
	require.NoError(t, err)
	for n, text := range []string{"", "é€😀", strings.Repeat("é", 5<<20)} {
		require.NoError(t, add(t.Context(), conn, int64(n), "é", text))
		var kind, name, got string
		require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT typeof(content), name, content FROM t WHERE n = ?", n).Scan(&kind, &name, &got))
		assert.Equal(t, "text é", kind+" "+name)
		assert.True(t, text == got)
		b := make([]byte, len(text))
		require.NoError(t, bigtext.On(conn, func(h *bigtext.Handle) error { return h.Read("main", "t", "content", int64(n), b) }))
		assert.True(t, text == string(b))
	}
	short := make([]byte, 3)
	err = bigtext.On(conn, func(h *bigtext.Handle) error { return h.Read("main", "t", "content", 1, short) })
	require.EqualError(t, err, "row 1 of t has 9 bytes instead of 3")
	err = bigtext.On(conn, func(h *bigtext.Handle) error { return h.Read("main", "t", "content", 7, short) })
	require.EqualError(t, err, "no such rowid: 7 (1)")
}

func TestErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	conn, other := open(t, path), open(t, path)
	var e *bigtext.Error
	require.ErrorAs(t, add(t.Context(), conn, 1, "a", "b"), &e)
	assert.EqualError(t, e, "no such table: t (1)")
	_, err := conn.ExecContext(t.Context(), "CREATE TABLE t (n INTEGER PRIMARY KEY, name TEXT, content TEXT NOT NULL)")
	require.NoError(t, err)
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	require.ErrorAs(t, add(t.Context(), conn, 1, "a", "b"), &e)
	assert.Equal(t, 5, e.Code()&0xff)
	_, err = other.ExecContext(t.Context(), "COMMIT")
	require.NoError(t, err)

	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, add(stopped, conn, 1, "a", "b"), context.Canceled)
	require.NoError(t, add(t.Context(), conn, 1, "a", "b"))
	require.ErrorAs(t, add(t.Context(), conn, 1, "a", "b"), &e)
	assert.Equal(t, 19, e.Code()&0xff)
}
