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
	var pool *sql.DB
	var tables []string
	there, err := disk.Exists(guildDB)
	if err == nil && there {
		if pool, err = connectGuild(ctx, guildDB, "ro"); err == nil {
			defer pool.Close() // it was only read
			tables, err = texts(ctx, pool, `SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?`, "heartbeat_messages")
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", guildDB, err)
	}
	return s.write(ctx, func(tx *sql.Tx) (err error) {
		last := int64(0)
		if len(tables) > 0 {
			err = eachRow(ctx, pool, func(rows *sql.Rows) error {
				var at, kind, content string
				if err := rows.Scan(&last, &at, &kind, &content); err != nil {
					return err
				}
				return insert(tx, session, last, at, kind, content)
			}, `SELECT n, at, type, content FROM heartbeat_messages WHERE session_id = ? ORDER BY n`, session)
		}
		if err == nil {
			_, err = tx.Exec(`INSERT INTO sessions (session, guilddb, shown) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, session, guildDB, last)
		}
		return err
	})
}
