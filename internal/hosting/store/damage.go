package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// rescue copies what another database has, as far as it can be read, and the new one lacks: the rows of a
// session or, with "", all records and reports, and the messages of sessions whose guild may lack their
// end. unread is the first error of reading.
func rescue(ctx context.Context, from, into *sql.DB, session string) (unread, err error) {
	err = transaction(ctx, into, func(tx *sql.Tx) error {
		rows := func(table, where, order string, args ...any) error {
			damage, err := copyRows(ctx, from, tx, table, where, order, args...)
			if unread == nil {
				unread = damage
			}
			return err
		}
		for _, table := range []string{"sessions", "states", "reports"} {
			if err := rows(table, "?1 IN (+session, '')", "rowid", session); err != nil {
				return err
			}
		}
		ids, err := []string{session}, error(nil)
		if session == "" {
			ids, err = texts(ctx, tx, `SELECT session FROM sessions WHERE session NOT IN (SELECT session FROM reports WHERE kind = ? AND state = ?)`, Record, Sent)
		}
		for _, id := range ids {
			err = errors.Join(err, rows("messages", "session = ?", "n", id), rows("pieces", "session = ?", "rowid", id))
		}
		return err
	})
	return unread, err
}

// copyRows copies rows from the first on and, if a damaged row stops it, from the last on.
func copyRows(ctx context.Context, from *sql.DB, tx *sql.Tx, table, where, order string, args ...any) (damage, err error) {
	for _, direction := range []string{"", " DESC"} {
		stopped := eachRow(ctx, from, func(rows *sql.Rows) error {
			columns, err2 := rows.Columns()
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err2 = errors.Join(err2, rows.Scan(into...)); err2 != nil {
				return err2
			}
			_, err = tx.Exec("INSERT OR IGNORE INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES (?"+strings.Repeat(", ?", len(columns)-1)+")", values...)
			return err
		}, "SELECT * FROM "+table+" WHERE "+where+" ORDER BY "+order+direction, args...)
		if stopped == nil || err != nil {
			return damage, err
		}
		damage = fmt.Errorf("%s: %w", table, stopped)
	}
	return damage, nil
}

// replace sets a damaged database aside, and makes another one with what can be read of it.
func (s *Store) replace(ctx context.Context) error {
	aside, err := s.setAside(ctx)
	if err != nil || aside == "" {
		return err
	}
	into, _, err := s.open(ctx, true)
	if err != nil {
		return err
	}
	from, err := pool(aside, "mode=ro")
	var unread error
	if err == nil {
		defer from.Close() // only read
		unread, err = rescue(ctx, from, into, "")
	}
	text := fmt.Sprintf("%s was damaged and is %s now: another database takes its place, with what could be read of it", s.path, aside)
	if err = errors.Join(unread, err); err != nil {
		text += fmt.Sprintf(", which is not all (%v): a session whose host is dead may be known nowhere else", err)
	}
	s.log(text)
	return nil
}

// Mend replaces a database in which records or reports are damaged, as does a process at work that meets damage.
func (s *Store) Mend(ctx context.Context) error {
	err := s.rows(ctx, func(*sql.Rows) error { return nil }, `SELECT content FROM states UNION ALL SELECT head FROM reports`)
	if isDamaged(err) {
		err = s.replace(ctx)
	}
	return err
}

// Damaged returns the path of a folder's last damaged database that was set aside, "" for none.
func Damaged(dir string) string {
	all, _ := filepath.Glob(filepath.Join(dir, Name+".damaged-*Z")) // the pattern is valid
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// setAside renames a damaged database and returns its new path, "" if another process has renamed it.
func (s *Store) setAside(ctx context.Context) (aside string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock, err := disk.AcquireLock(ctx, s.path+".lock", busyTimeout)
	if err != nil {
		return "", err
	}
	defer lock.Release() // the process's end would release it as well
	if moved(s.path, s.last) {
		return "", nil
	}
	if err := disk.Remove(s.path + "-shm"); err != nil { // it may describe a removed log
		return "", err
	}
	aside = s.path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000000Z")
	for _, part := range []string{"-wal", ""} {
		if err := disk.Rename(s.path+part, aside+part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return aside, nil
}

// isBusy reports whether an error means only that another program had the database locked.
func isBusy(err error) bool { return hasCode(err, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) }

// Passes reports whether a database error goes away by itself: another program had locked it, or its disk had no room.
func Passes(err error) bool { return isBusy(err) || hasCode(err, sqlite3.SQLITE_FULL) }

// isDamaged reports whether an error means that the database or its log is damaged.
func isDamaged(err error) bool {
	return hasCode(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR_SHORT_READ)
}

func hasCode(err error, codes ...int) bool {
	e, coded := errors.AsType[interface { // the driver's error
		error
		Code() int
	}](err)
	return coded && (slices.Contains(codes, e.Code()&0xff) || slices.Contains(codes, e.Code()))
}

// maxSpooled is the longest line of a spool, in bytes: a message of 64 MiB and its envelope.
const maxSpooled = 64<<20 + 4<<10

// Adopt imports a session's messages from an older release: those in the guild's database, where they stay too, and
// the rest from the session's spool. It may be called again after any error or kill.
func (s *Store) Adopt(ctx context.Context, session, guildDB, spool string) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		last, err := adoptFrom(ctx, tx, session, guildDB)
		if err == nil {
			_, err = tx.Exec(`INSERT INTO sessions (session, guilddb, shown) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, session, guildDB, last)
		}
		return errors.Join(err, adoptSpool(tx, session, spool))
	})
}

// adoptFrom copies the messages in a guild's database, and returns the number of the last one.
func adoptFrom(ctx context.Context, tx *sql.Tx, session, guildDB string) (last int64, err error) {
	there, err := disk.Exists(guildDB)
	if err != nil || !there {
		return 0, err
	}
	pool, err := connectGuild(ctx, guildDB, "ro")
	var tables []string
	if err == nil {
		defer pool.Close() // only read
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

// adoptSpool copies the messages of a spool. A spool's first line names the session; each other line is a
// message. A line torn by a kill is left out.
func adoptSpool(tx *sql.Tx, session, spool string) error {
	f, err := disk.OpenRead(spool)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() // only read
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
