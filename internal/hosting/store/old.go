package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// maxSpooled is the longest line of a spool, in bytes: a message of 64 MiB and what is around it.
const maxSpooled = 64<<20 + 4<<10

// Adopt takes a session over whose messages an older release has kept: in the guild's
// database, where they stay as well, and in the session's spool those that are not there. It
// may be called again after any error or kill.
func (s *Store) Adopt(ctx context.Context, session, guildDB, spool string) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		last, err := adoptFrom(ctx, tx, session, guildDB)
		if err == nil {
			_, err = tx.Exec(`INSERT INTO sessions (session, guilddb, shown) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, session, guildDB, last)
		}
		return errors.Join(err, adoptSpool(tx, session, spool))
	})
}

// adoptFrom copies the messages in a guild's database, and returns the number of the last.
func adoptFrom(ctx context.Context, tx *sql.Tx, session, guildDB string) (last int64, err error) {
	there, err := disk.Exists(guildDB)
	if err != nil || !there {
		return 0, err
	}
	pool, err := connectGuild(ctx, guildDB, "ro")
	var tables []string
	if err == nil {
		defer pool.Close() // it was only read
		tables, err = texts(ctx, pool, `SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?`, "heartbeat_messages")
	}
	if err == nil && len(tables) > 0 {
		err = eachRow(ctx, pool, func(rows *sql.Rows) error {
			var at, kind, content string
			if err := rows.Scan(&last, &at, &kind, &content); err != nil {
				return err
			}
			return insert(tx, session, last, at, kind, content)
		}, `SELECT n, at, type, content FROM heartbeat_messages WHERE session_id = ? ORDER BY n`, session)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", guildDB, err)
	}
	return last, nil
}

// adoptSpool copies the messages of a spool: its first line says whose it is, and each
// other one is a message. What a kill has torn is left out.
func adoptSpool(tx *sql.Tx, session, spool string) error {
	f, err := disk.OpenRead(spool)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	var failed error
	err = lines.EachHead(maxSpooled, false, io.NewSectionReader(f, 0, f.Info().Size), 0, func(start, _ int64, line []byte, whole bool) bool {
		if start == 0 {
			var head struct{ Session string }
			if err := json.Unmarshal(line, &head); err != nil || head.Session != session {
				failed = fmt.Errorf("%s: it belongs to session %q: %w", spool, head.Session, disk.ErrForeign)
			}
			return failed == nil
		}
		var m Message
		if whole && json.Unmarshal(line, &m) == nil && m.N >= 1 && !m.At.IsZero() && len(m.Content) >= 2 {
			failed = insert(tx, session, m.N, m.At.UTC().Format(atLayout), m.Type, asText(m.Content))
		}
		return failed == nil
	})
	return errors.Join(err, failed)
}
