package transcript

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"time"
	"unsafe"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"heartbeat/internal/disk"
)

// busyTimeout is how long a statement waits for another program's transaction.
const busyTimeout = 5 * time.Second

// database is one connection to the database. It is not safe for concurrent use.
type database struct {
	path   string
	pool   *sql.DB
	conn   *sql.Conn
	insert *sql.Stmt
	pick   *sql.Stmt
	file   disk.Info
}

const (
	createMessages = `CREATE TABLE IF NOT EXISTS heartbeat_messages (
	session_id TEXT NOT NULL,
	n          INTEGER NOT NULL,
	at         TEXT NOT NULL,
	type       TEXT NOT NULL,
	content    TEXT NOT NULL,
	PRIMARY KEY (session_id, n)
)`
	createTranscripts = `CREATE TABLE IF NOT EXISTS books_animator_transcripts (id TEXT PRIMARY KEY, content TEXT NOT NULL)`

	insertMessage = `INSERT INTO heartbeat_messages (session_id, n, at, type, content) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (session_id, n) DO NOTHING`

	pickMessage = `SELECT n, at, type, content FROM heartbeat_messages WHERE session_id = ? AND n >= ? ORDER BY n LIMIT 1`

	// The text is put together from its parts and not parsed: SQLite's JSON functions
	// refuse what is nested deeper than 1,000 levels, and would write numbers in their
	// own way. One group_concat over all parts needs the least memory.
	writeRow = `INSERT INTO books_animator_transcripts (id, content)
SELECT ?1, group_concat(part, separator) FROM (
	SELECT '{"id":' || json_quote(?1) || ',"messages":[' AS part, '' AS separator
	UNION ALL
	SELECT content, iif(n = (SELECT min(n) FROM heartbeat_messages WHERE session_id = ?1 AND type IN ('assistant', 'user')), '', ',')
	FROM (SELECT n, content FROM heartbeat_messages WHERE session_id = ?1 AND type IN ('assistant', 'user') ORDER BY n)
	UNION ALL
	SELECT ']}', ''
) WHERE true HAVING count(*) > 2
ON CONFLICT (id) DO UPDATE SET content = excluded.content`
)

// openDatabase opens the database for writing and makes what is missing. It waits so
// long for another program's transaction.
func openDatabase(ctx context.Context, path string, wait time.Duration) (*database, error) {
	if err := makeDatabase(path); err != nil {
		return nil, err
	}
	d, err := connect(ctx, path, "rw")
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{
		waitPragma(wait),
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = NORMAL",
		"PRAGMA journal_size_limit = 67108864",
		createMessages,
		waitPragma(busyTimeout),
	} {
		if _, err := d.conn.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(d.fail(err), d.close())
		}
	}
	if d.insert, err = d.conn.PrepareContext(ctx, insertMessage); err != nil {
		return nil, errors.Join(d.fail(err), d.close())
	}
	return d, nil
}

func waitPragma(d time.Duration) string {
	return fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds())
}

// makeDatabase creates a missing file, which SQLite would do with a wider mode.
func makeDatabase(path string) error {
	info, err := disk.StatFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return disk.Create(path)
	}
	switch {
	case err != nil:
		return err
	case info.IsDir:
		return fmt.Errorf("%s: it is a directory and no database", path)
	case !info.IsRegular:
		return fmt.Errorf("%s: it is not a regular file and no database", path)
	}
	return nil
}

// connect opens an existing database; mode is rw or ro.
func connect(ctx context.Context, path, mode string) (d *database, err error) {
	d = &database{path: path}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if d.file, err = disk.StatFile(path); err != nil {
		return nil, err
	}
	if !d.file.IsRegular {
		return nil, fmt.Errorf("%s: it is not a regular file and no database", path)
	}
	name := (&url.URL{Scheme: "file", OmitHost: true, Path: abs}).String()
	d.pool, err = sql.Open("sqlite", fmt.Sprintf("%s?mode=%s&_pragma=busy_timeout(%d)", name, mode, busyTimeout.Milliseconds()))
	if err != nil {
		return nil, d.fail(err)
	}
	if d.conn, err = d.pool.Conn(ctx); err != nil {
		return nil, errors.Join(d.fail(err), d.close())
	}
	return d, nil
}

// moved reports whether the path now names another file, or none.
func (d *database) moved() bool {
	info, err := disk.StatFile(d.path)
	return err != nil || info.Dev != d.file.Dev || info.Ino != d.file.Ino
}

// last is the highest number of a session's messages, 0 if there are none.
func (d *database) last(ctx context.Context, session string) (n int64, err error) {
	err = d.conn.QueryRowContext(ctx, `SELECT coalesce(max(n), 0) FROM heartbeat_messages WHERE session_id = ?`, session).Scan(&n)
	if err != nil {
		return 0, d.fail(err)
	}
	return n, nil
}

// find is the number under which a message is stored, 0 if it is not.
func (d *database) find(ctx context.Context, session string, m Stored) (n int64, err error) {
	err = d.conn.QueryRowContext(ctx, `SELECT n FROM heartbeat_messages WHERE session_id = ? AND at = ? AND content = ?`,
		session, m.At.UTC().Format(atLayout), asText(m.Content)).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, d.fail(err)
	}
	return n, nil
}

// store adds messages in one transaction. Those that are there already stay.
func (d *database) store(ctx context.Context, session string, batch []Stored, shift int64) error {
	return d.transaction(ctx, func() error {
		for _, m := range batch {
			_, err := d.insert.Exec(session, m.N+shift, m.At.UTC().Format(atLayout), m.Type, asText(m.Content))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// row writes the guild's row of the session.
func (d *database) row(ctx context.Context, session string) error {
	if _, err := d.conn.ExecContext(ctx, createTranscripts); err != nil {
		return d.fail(err)
	}
	if _, err := d.conn.ExecContext(ctx, writeRow, session); err != nil {
		return d.fail(err)
	}
	return nil
}

// synced has the next commits, and with them all before, survive a power loss.
func (d *database) synced(ctx context.Context) error {
	_, err := d.conn.ExecContext(ctx, "PRAGMA synchronous = FULL")
	return d.fail(err)
}

// at returns the first message of a session from n on.
func (d *database) at(ctx context.Context, session string, n int64) (m Stored, found bool, err error) {
	if d.pick == nil {
		if d.pick, err = d.conn.PrepareContext(ctx, pickMessage); err != nil {
			return m, false, d.fail(err)
		}
	}
	var at string
	var content []byte
	err = d.pick.QueryRowContext(ctx, session, n).Scan(&m.N, &at, &m.Type, &content)
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	if err != nil {
		return m, false, d.fail(err)
	}
	m.Content = content
	if m.At, err = time.Parse(atLayout, at); err != nil {
		return m, false, d.fail(err)
	}
	return m, true, nil
}

func (d *database) transaction(ctx context.Context, do func() error) error {
	if _, err := d.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return d.fail(err)
	}
	err := do()
	if err == nil {
		_, err = d.conn.ExecContext(context.WithoutCancel(ctx), "COMMIT")
	}
	if err != nil {
		_, _ = d.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // SQLite may have done so itself
	}
	return d.fail(err)
}

// isBusy reports whether the database only waited for another program.
func isBusy(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	primary := e.Code() & 0xff
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}

func (d *database) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", d.path, err)
}

func (d *database) close() (err error) {
	if d == nil {
		return nil
	}
	for _, statement := range []*sql.Stmt{d.insert, d.pick} {
		if statement != nil {
			err = errors.Join(err, statement.Close())
		}
	}
	if d.conn != nil {
		err = errors.Join(err, d.conn.Close())
	}
	if d.pool != nil {
		err = errors.Join(err, d.pool.Close())
	}
	return err
}

// asText is b as a string, without a copy: a message may have many megabytes, and
// nobody changes it.
func asText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
