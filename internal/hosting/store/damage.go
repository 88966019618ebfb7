package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	_ "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"heartbeat/internal/disk"
)

// rescue copies the session's rows from a database that has lost its name.
func (s *Store) rescue(ctx context.Context, old *sql.DB) error {
	if s.session == "" {
		return nil
	}
	return transaction(ctx, s.pool, func(_ *sql.Conn, tx *sql.Tx) error {
		for table, columns := range map[string]int{"sessions": 3, "states": 3, "messages": 5, "reports": 13} {
			if err := copyRows(ctx, old, tx, table, columns, s.session); err != nil {
				return err
			}
		}
		return nil
	})
}

func copyRows(ctx context.Context, old *sql.DB, tx *sql.Tx, table string, columns int, session string) error {
	rows, err := old.QueryContext(ctx, "SELECT * FROM "+table+" WHERE session = ?", session)
	if err != nil {
		return err
	}
	defer rows.Close() // it was only read
	marks := "?"
	for range columns - 1 {
		marks += ", ?"
	}
	values, into := make([]any, columns), make([]any, columns)
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT OR IGNORE INTO "+table+" VALUES ("+marks+")", values...); err != nil {
			return err
		}
	}
	return rows.Err()
}

// setAside renames a damaged database, unless somebody else has done so.
func (s *Store) setAside(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock, err := disk.AcquireLock(ctx, s.path+".lock", busyTimeout)
	if err != nil {
		return err
	}
	defer lock.Release() // the process's end would release it as well
	if moved(s.path, s.last) {
		return nil
	}
	aside := s.path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000000")
	for _, part := range []string{"-wal", "-shm", ""} {
		if err := disk.Rename(s.path+part, aside+part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	s.log(fmt.Sprintf("%s was damaged and is %s now: another database takes its place", s.path, aside))
	return nil
}

// isBusy reports whether the database only waited for another program.
func isBusy(err error) bool { return is(err, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) }

// Passes reports whether what an error of the database says will be over without anybody's
// help: others had it, or its disk had no room.
func Passes(err error) bool { return isBusy(err) || is(err, sqlite3.SQLITE_FULL) }

func isDamaged(err error) bool { return is(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) }

func is(err error, codes ...int) bool {
	var e interface { // the driver's error, or bigtext's
		error
		Code() int
	}
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.Code()&0xff == code {
			return true
		}
	}
	return false
}
