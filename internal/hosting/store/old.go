package store

import (
	"context"
	"database/sql"
	"fmt"

	"heartbeat/internal/disk"
)

// Adopt takes a session over whose messages an older release has kept in the guild's
// database, where they stay as well.
func (s *Store) Adopt(ctx context.Context, session, guildDB string) error {
	old, err := oldMessages(ctx, session, guildDB)
	if err != nil {
		return fmt.Errorf("%s: %w", guildDB, err)
	}
	defer old.close()
	return s.write(ctx, func(tx *sql.Tx) error {
		last := int64(0)
		for old.next() {
			m := old.message
			last = max(last, m.n)
			if _, err := tx.Exec(`INSERT INTO messages (session, n, at, type, content) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, session, m.n, m.at, m.kind, m.content); err != nil {
				return err
			}
		}
		if old.err != nil {
			return old.err
		}
		_, err := tx.Exec(`INSERT INTO sessions (session, guilddb, shown) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, session, guildDB, last)
		return err
	})
}

// old are the messages of a session in the guild's database. It may be empty.
type old struct {
	pool    *sql.DB
	rows    *sql.Rows
	err     error
	message struct {
		n                 int64
		at, kind, content string
	}
}

func oldMessages(ctx context.Context, session, path string) (o *old, err error) {
	o = &old{}
	if there, err := disk.Exists(path); err != nil || !there {
		return o, err
	}
	if o.pool, err = connectGuild(ctx, path, "ro"); err != nil {
		return o, err
	}
	have := 0
	err = o.pool.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'heartbeat_messages'`).Scan(&have)
	if err == nil && have > 0 {
		o.rows, err = o.pool.QueryContext(ctx, `SELECT n, at, type, content FROM heartbeat_messages WHERE session_id = ? ORDER BY n`, session)
	}
	if err != nil {
		o.close()
	}
	return o, err
}

func (o *old) next() bool {
	if o.rows == nil || !o.rows.Next() {
		if o.rows != nil {
			o.err = o.rows.Err()
		}
		return false
	}
	o.err = o.rows.Scan(&o.message.n, &o.message.at, &o.message.kind, &o.message.content)
	return o.err == nil
}

func (o *old) close() {
	if o.rows != nil {
		_ = o.rows.Close() // it was only read
	}
	if o.pool != nil {
		_ = o.pool.Close()
	}
}
