package store

import (
	"context"
	"database/sql"
	"errors"

	"heartbeat/internal/disk"
)

// Parts are those of a session's record, by their names: config, facts and outcome. Each is
// a JSON object, and a row.
type Parts map[string]string

// Begin notes a session with its record and which guild's database has its row, and
// forgets the reports of a former life of the session.
func (s *Store) Begin(ctx context.Context, session, guildDB string, parts Parts) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO sessions (session, guilddb) VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET guilddb = excluded.guilddb`, session, guildDB)
		if err == nil {
			_, err = tx.Exec(`DELETE FROM reports WHERE session = ?`, session)
		}
		return errors.Join(err, put(tx, session, parts))
	})
}

// Put replaces parts of a session's record, and returns how many it has now: another
// database may have taken the place of that with the others. What is not lasting is no
// costly commit, so that each fact can be kept.
func (s *Store) Put(ctx context.Context, session string, parts Parts, lasting bool) (have int, err error) {
	err = s.commit(ctx, !lasting, func(tx *sql.Tx) error {
		if err := put(tx, session, parts); err != nil {
			return err
		}
		return tx.QueryRow(`SELECT count(*) FROM states WHERE session = ?`, session).Scan(&have)
	})
	return have, err
}

func put(tx *sql.Tx, session string, parts Parts) error {
	for name, content := range parts {
		if _, err := tx.Exec(`INSERT INTO states (session, part, content) VALUES (?, ?, ?) ON CONFLICT (session, part) DO UPDATE SET content = excluded.content`, session, name, content); err != nil {
			return err
		}
	}
	return nil
}

// Parts returns the parts of a session's record, none if it has no record.
func (s *Store) Parts(ctx context.Context, session string) (Parts, error) {
	parts := Parts{}
	err := s.rows(ctx, func(rows *sql.Rows) error {
		var name, content string
		err := rows.Scan(&name, &content)
		parts[name] = content
		return err
	}, `SELECT part, content FROM states WHERE session = ?`, session)
	return parts, err
}

// Forget removes a session's record, and its reports that were sent. Its messages stay.
func (s *Store) Forget(ctx context.Context, session string) error {
	if there, err := disk.Exists(s.path); err != nil || !there {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`DELETE FROM states WHERE session = ?`, session)
		if err == nil {
			_, err = tx.Exec(`DELETE FROM reports WHERE session = ? AND state = ?`, session, Sent)
		}
		return err
	})
}
