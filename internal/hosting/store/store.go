// Package store is the database in which the host keeps its sessions: their records, messages, and
// reports to the guild. It lies in the host's own folder beside the guild's database. The guild's
// reports, and its table of transcripts, are made from it.
//
// A commit that decides something survives a power loss at once. A message or fact survives a kill at once, and a power
// loss a little later. A damaged database is set aside under another name, and another takes its place.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	sqlite3 "modernc.org/sqlite/lib"

	"heartbeat/internal/disk"
)

const Name = "host.db" // the database's name in its folder

// ErrNewer means that a newer release made the database, which this one does not touch.
var ErrNewer = errors.New("a newer release made this database: use that one")

// busyTimeout is how long a statement waits for another program's transaction.
const busyTimeout = 5 * time.Second

// Store is the database, opened at first use and again if removed or replaced. It is safe for concurrent use.
type Store struct {
	path    string
	session string
	log     func(string)

	mu    sync.Mutex
	pool  *sql.DB   // nil until it is opened
	quick *sql.DB   // the same database; its commits are synced with pool's next one
	file  disk.Info // the file that is open
	last  disk.Info // the file that was last opened, or could not be
}

// In returns the database in a folder, which must exist. The rows of session, unless "", are copied if
// the file is removed or replaced while in use.
func In(dir, session string) *Store {
	return &Store{path: filepath.Join(dir, Name), session: session, log: func(string) {}}
}

// SetLog sets the function that gets a sentence when a database was damaged, removed or replaced.
func (s *Store) SetLog(log func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = log
}

func (s *Store) Path() string { return s.path }

// Close closes the database. The next use opens it again.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool == nil {
		return nil
	}
	err := errors.Join(s.quick.Close(), s.pool.Close())
	s.pool, s.quick = nil, nil
	return err
}

// read calls f with the database, if there is one. A Store that belongs to one session replaces a damaged one.
func (s *Store) read(ctx context.Context, f func(*sql.DB) error) error {
	err := s.tryRead(ctx, f)
	if isDamaged(err) && s.session != "" && s.replace(ctx) == nil {
		err = s.tryRead(ctx, f)
	}
	return err
}

func (s *Store) tryRead(ctx context.Context, f func(*sql.DB) error) error {
	pool, _, err := s.open(ctx, false)
	if err == nil {
		err = f(pool)
	} else if !isDamaged(err) && hasCode(err, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN) {
		err = s.readAlone(f, err)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return s.wrap(err)
}

// readAlone is read for a full disk, which has no room for what the database's users share. It returns why if
// other processes may have the database open.
func (s *Store) readAlone(f func(*sql.DB) error, why error) error {
	if wal, err := disk.StatName(s.path + "-wal"); err == nil && wal.Size > 0 {
		return why
	}
	alone, err := pool(s.path, "mode=ro&immutable=1")
	if err != nil {
		return err
	}
	defer alone.Close() // only read
	return f(alone)
}

func (s *Store) rows(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return s.read(ctx, func(pool *sql.DB) error { return eachRow(ctx, pool, scan, query, args...) })
}

// querier is a pool, connection or transaction.
type querier interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

func eachRow(ctx context.Context, in querier, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := in.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close() // only read
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// TestOnlyPages, when set, bounds the database's pages, as a full disk does.
var TestOnlyPages func() int

// write runs f in one transaction, and again with another database if this one is damaged.
func (s *Store) write(ctx context.Context, f func(*sql.Tx) error) error {
	return s.commit(ctx, false, f)
}

// commit is write or, with quickly, a cheaper transaction: a power loss undoes it until a later write.
func (s *Store) commit(ctx context.Context, quickly bool, f func(*sql.Tx) error) error {
	for again := false; ; again = true {
		pool, quick, err := s.open(ctx, true)
		if quickly {
			pool = quick
		}
		if err == nil {
			err = transaction(ctx, pool, f)
		}
		if err == nil || again || !isDamaged(err) {
			return s.wrap(err)
		}
		if failed := s.replace(ctx); failed != nil {
			return s.wrap(errors.Join(err, failed))
		}
	}
}

func transaction(ctx context.Context, pool *sql.DB, f func(*sql.Tx) error) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if TestOnlyPages != nil {
		if _, err := tx.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", TestOnlyPages())); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // SQLite may have rolled back itself
		return err
	}
	return tx.Commit()
}

// open returns the database that is at the path now.
func (s *Store) open(ctx context.Context, create bool) (full, quick *sql.DB, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool != nil && !moved(s.path, s.file) {
		return s.pool, s.quick, nil
	}
	if create {
		if err := s.create(ctx); err != nil {
			return nil, nil, err
		}
	}
	file, err := ours(s.path)
	if err != nil {
		return nil, nil, err
	}
	s.last = file
	full, err = connect(ctx, s.path, "FULL")
	if err != nil {
		return nil, nil, err
	}
	quick, err = connect(ctx, s.path, "NORMAL")
	if err != nil {
		return nil, nil, errors.Join(err, full.Close())
	}
	old, oldQuick := s.pool, s.quick
	s.pool, s.quick, s.file = full, quick, file
	if old != nil {
		if s.session != "" {
			s.log(s.path + ": the database was removed or replaced: what it had of this session is copied")
			if unread, err := rescue(ctx, old, full, s.session); errors.Join(unread, err) != nil {
				s.log("copy what the database had of this session: " + errors.Join(unread, err).Error())
			}
		}
		_ = errors.Join(old.Close(), oldQuick.Close()) // the old file has no name any more
	}
	return s.pool, s.quick, nil
}

// create makes a missing file. It removes what users of a removed file still share, which would spoil the new one.
func (s *Store) create(ctx context.Context) error {
	if there, err := disk.Exists(s.path); err != nil || there {
		return err
	}
	lock, err := disk.AcquireLock(ctx, s.path+".lock", busyTimeout)
	if err != nil {
		return err
	}
	defer lock.Release() // the process's end would release it as well
	if there, err := disk.Exists(s.path); err != nil || there {
		return err
	}
	if err := errors.Join(disk.Remove(s.path+"-shm"), disk.Remove(s.path+"-wal")); err != nil {
		return err
	}
	return disk.Create(s.path)
}

// makeFile makes a missing file. SQLite would give it a wider mode.
func makeFile(path string) error {
	there, err := disk.Exists(path)
	if err != nil || there {
		return err
	}
	return disk.Create(path)
}

// ours refuses a file that somebody else may have put there.
func ours(path string) (disk.Info, error) {
	info, err := disk.StatName(path)
	if err != nil {
		return info, err
	}
	dir, err := disk.StatDir(filepath.Dir(path))
	switch {
	case err != nil:
		return info, err
	case info.IsLink || !info.IsRegular:
		return info, fmt.Errorf("it is no regular file: remove it: %w", disk.ErrForeign)
	case info.Links > 1:
		return info, fmt.Errorf("it has %d names: remove it: %w", info.Links, disk.ErrForeign)
	case info.UID != dir.UID:
		return info, fmt.Errorf("it belongs to user %d, and its folder to user %d: %w", info.UID, dir.UID, disk.ErrForeign)
	case info.Mode&0o022 != 0:
		return info, fmt.Errorf("others may write to it (mode %04o): take that right away (chmod go-w): %w", info.Mode, disk.ErrForeign)
	}
	return info, nil
}

func moved(path string, was disk.Info) bool {
	now, err := disk.StatName(path)
	return err != nil || now.Dev != was.Dev || now.Ino != was.Ino
}

// pool returns a pool of connections to a file, each with these options of the driver.
func pool(path, options string) (*sql.DB, error) {
	return sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: options}).String())
}

// connect opens the file and makes missing tables, again while others do: SQLite does not wait for that itself.
func connect(ctx context.Context, path, sync string) (*sql.DB, error) {
	pool, err := pool(path, fmt.Sprintf("mode=rw&_txlock=immediate&_pragma=busy_timeout(%d)&_pragma=synchronous(%s)", busyTimeout.Milliseconds(), sync))
	if err != nil {
		return nil, err
	}
	pool.SetMaxIdleConns(2)
	for began := time.Now(); ; {
		if err = prepare(ctx, pool); err == nil {
			return pool, nil
		}
		if !isBusy(err) || ctx.Err() != nil || time.Since(began) > busyTimeout {
			return nil, errors.Join(err, pool.Close())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func prepare(ctx context.Context, pool *sql.DB) error {
	for _, statement := range []string{"PRAGMA journal_mode = WAL", "PRAGMA journal_size_limit = 67108864"} {
		if _, err := pool.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	have := 0
	if err := pool.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil || have == version {
		return err
	}
	if have > version {
		return fmt.Errorf("its version is %d, and this release knows %d: %w", have, version, ErrNewer)
	}
	return transaction(ctx, pool, func(tx *sql.Tx) error {
		_, err := tx.Exec(schema)
		return err
	})
}

const version = 3

const schema = `
CREATE TABLE IF NOT EXISTS sessions (
	session TEXT PRIMARY KEY,
	guilddb TEXT NOT NULL,              -- the guild's database
	shown   INTEGER NOT NULL DEFAULT 0  -- the last message that the guild's table has
);
CREATE TABLE IF NOT EXISTS states (
	session TEXT NOT NULL,
	part    TEXT NOT NULL,              -- of the session's record: config, facts or outcome
	content TEXT NOT NULL,              -- a JSON object
	PRIMARY KEY (session, part)
);
CREATE TABLE IF NOT EXISTS messages (
	session TEXT NOT NULL,
	n       INTEGER NOT NULL,
	at      TEXT NOT NULL,
	type    TEXT NOT NULL,
	content TEXT NOT NULL,
	PRIMARY KEY (session, n)
);
CREATE TABLE IF NOT EXISTS pieces (
	session TEXT NOT NULL,
	n       INTEGER NOT NULL,           -- of a long message, whose beginning is in messages
	piece   INTEGER NOT NULL,           -- from 1 on
	content TEXT NOT NULL,
	PRIMARY KEY (session, n, piece)
);
CREATE TABLE IF NOT EXISTS reports (
	session TEXT NOT NULL,
	kind    TEXT NOT NULL,              -- running or record
	at      TEXT NOT NULL,
	guild   TEXT NOT NULL,              -- its address, empty if it is not known
	status  TEXT NOT NULL,              -- of a record
	error   TEXT NOT NULL,
	head    TEXT NOT NULL,              -- the report, without its transcript
	last    INTEGER NOT NULL,           -- the transcript goes up to this message; -1 if head has it
	state   TEXT NOT NULL,              -- waiting, refused or sent
	code    INTEGER NOT NULL DEFAULT 0, -- the HTTP status of a refusal
	reason  TEXT NOT NULL DEFAULT '',
	tried   TEXT NOT NULL DEFAULT '',
	file    INTEGER NOT NULL DEFAULT 0, -- it was written to the folder dlq
	PRIMARY KEY (session, kind)
);
PRAGMA user_version = 3`

func (s *Store) wrap(err error) error {
	if err == nil {
		return nil
	}
	if hasCode(err, sqlite3.SQLITE_IOERR_SHMSIZE) { // no room, which SQLite reports as an error of the disk
		err = fmt.Errorf("%w: %w", unix.ENOSPC, err)
	}
	return fmt.Errorf("%s: %w", s.path, err)
}
