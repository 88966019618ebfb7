package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"heartbeat/internal/disk"
)

const createTranscripts = `CREATE TABLE IF NOT EXISTS books_animator_transcripts (id TEXT PRIMARY KEY, content TEXT NOT NULL)`

// Show writes a session's row in the guild's own table.
func (s *Store) Show(ctx context.Context, session, guildDB string) error {
	last, _, err := s.Last(ctx, session)
	if err != nil {
		return err
	}
	if err = s.show(ctx, session, guildDB, last); err != nil {
		err = fmt.Errorf("%s: %w", guildDB, err)
	}
	if err != nil && !hasCode(err, sqlite3.SQLITE_TOOBIG) { // no other attempt changes that
		return err
	}
	return errors.Join(err, s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE sessions SET shown = max(shown, ?) WHERE session = ?`, last, session)
		return err
	}))
}

func (s *Store) show(ctx context.Context, session, path string, last int64) (err error) {
	if err := makeFile(path); err != nil {
		return err
	}
	pool, err := connectGuild(ctx, path, "rw")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	for _, statement := range []string{"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", createTranscripts} {
		if _, err := pool.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	row, err := s.row(ctx, session, last)
	if err == nil && row != "" {
		_, err = pool.ExecContext(ctx, `INSERT INTO books_animator_transcripts (id, content) VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET content = excluded.content`, session, row)
	}
	return err
}

// row returns a conversation as the guild's table has it, "" without messages. A message of several pieces has a
// stand-in there, because the driver and SQLite hold a row three times while they write it.
func (s *Store) row(ctx context.Context, session string, last int64) (string, error) {
	id, _ := json.Marshal(session) // a string always has a JSON form
	const shown = ` FROM messages WHERE session = ?1 AND n <= ?2 AND type IN ('assistant', 'user')`
	var text strings.Builder
	var count, size int
	err := s.read(ctx, func(pool *sql.DB) error {
		err := pool.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(octet_length(content)), 0)`+shown, session, last).Scan(&count, &size)
		if err != nil || count == 0 {
			return err
		}
		text.Reset() // damage may have cut a first attempt short
		text.Grow(size + count + 64 + len(id))
		between := fmt.Sprintf(`{"id":%s,"messages":[`, id)
		var content sql.RawBytes
		return eachRow(ctx, pool, func(rows *sql.Rows) error {
			err := rows.Scan(&content)
			text.WriteString(between)
			text.Write(content)
			between = ","
			return err
		}, `SELECT coalesce((SELECT '{"type":"heartbeat","subtype":"cut","was":"","bytes":' || (octet_length(messages.content) + sum(octet_length(pieces.content))) || '}'
	FROM pieces WHERE pieces.session = ?1 AND pieces.n = messages.n), content)`+shown+` ORDER BY n`, session, last)
	})
	if err != nil || count == 0 {
		return "", err
	}
	text.WriteString("]}")
	return text.String(), nil
}

// connectGuild opens the guild's database with mode rw or ro.
func connectGuild(ctx context.Context, path, mode string) (*sql.DB, error) {
	info, err := disk.StatFile(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir:
		return nil, errors.New("it is a directory and no database")
	case !info.IsRegular:
		return nil, errors.New("it is not a regular file and no database")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	pool, err := pool(path, fmt.Sprintf("mode=%s&_pragma=busy_timeout(%d)", mode, busyTimeout.Milliseconds()))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1) // the settings are this connection's
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// Rows returns, in order, up to ten IDs of sessions in the guild's table that begin with prefix.
func Rows(ctx context.Context, guildDB, prefix string) ([]string, error) {
	return inTable(ctx, guildDB, `SELECT id FROM books_animator_transcripts WHERE id >= ?1 AND id < ?1 || char(1114111) ORDER BY id LIMIT 10`, prefix)
}

// Row returns the messages of a conversation in the guild's table, also of a session that was not hosted here.
func Row(ctx context.Context, guildDB, session string) ([]json.RawMessage, error) {
	found, err := inTable(ctx, guildDB, `SELECT content FROM books_animator_transcripts WHERE id = ?`, session)
	var row struct{ Messages []json.RawMessage }
	if err == nil && len(found) > 0 {
		if err = json.Unmarshal([]byte(found[0]), &row); err != nil {
			err = fmt.Errorf("%s: the row of session %s: %w", guildDB, session, err)
		}
	}
	return row.Messages, err
}

// inTable returns the results of a query of one column, none for a database without the guild's table.
func inTable(ctx context.Context, path, query, arg string) (all []string, err error) {
	pool, err := connectGuild(ctx, path, "ro")
	if err == nil {
		defer pool.Close() // only read
		all, err = texts(ctx, pool, `SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?`, "books_animator_transcripts")
	}
	if err == nil && len(all) > 0 {
		all, err = texts(ctx, pool, query, arg)
	}
	if isBusy(err) {
		err = fmt.Errorf("%w: another program has locked it: try again once that is done", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// texts returns the results of a query of one column.
func texts(ctx context.Context, in querier, query string, args ...any) (all []string, err error) {
	err = eachRow(ctx, in, func(rows *sql.Rows) error {
		text := ""
		err := rows.Scan(&text)
		all = append(all, text)
		return err
	}, query, args...)
	return all, err
}

// Session is a session and its guild's database.
type Session struct{ ID, GuildDB string }

// Behind returns the sessions whose row in their guild's table lacks messages, or only the session id if it is not "".
func (s *Store) Behind(ctx context.Context, id string) ([]Session, error) {
	return s.sessions(ctx, `(?1 = '' OR session = ?1) AND EXISTS
(SELECT 1 FROM messages WHERE messages.session = sessions.session AND n > shown AND type IN ('assistant', 'user'))`, id)
}

// WithPrefix returns the sessions with messages whose IDs begin with prefix: the first ten, in order.
func (s *Store) WithPrefix(ctx context.Context, prefix string) ([]Session, error) {
	return s.sessions(ctx, `session >= ?1 AND session < ?1 || char(1114111) AND EXISTS
(SELECT 1 FROM messages WHERE messages.session = sessions.session) ORDER BY session LIMIT 10`, prefix)
}

func (s *Store) sessions(ctx context.Context, where, arg string) (all []Session, err error) {
	err = s.rows(ctx, func(rows *sql.Rows) error {
		var one Session
		err := rows.Scan(&one.ID, &one.GuildDB)
		all = append(all, one)
		return err
	}, `SELECT session, guilddb FROM sessions WHERE `+where, arg)
	return all, err
}

// Waiting returns how many messages of a session's conversation its row in the guild's table lacks.
func (s *Store) Waiting(ctx context.Context, session string) (n int64, err error) {
	err = s.rows(ctx, func(rows *sql.Rows) error { return rows.Scan(&n) }, `SELECT count(*) FROM sessions JOIN messages USING (session)
WHERE session = ? AND n > shown AND type IN ('assistant', 'user')`, session)
	return n, err
}
