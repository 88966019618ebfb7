package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"heartbeat/internal/disk"
)

// Kind is the kind of a report.
type Kind string

// The reports that are kept until the guild has them.
const (
	Running Kind = "running"
	Record  Kind = "record"
)

// What became of a report.
const (
	Waiting = "waiting"
	Refused = "refused" // with HTTP 4xx: sent again only on request
	Sent    = "sent"
)

// Whole is the Last of a report whose Head includes its transcript.
const Whole = -1

// Report is a report to a guild.
type Report struct {
	Session string
	Kind    Kind
	At      time.Time
	Guild   string // the guild's address; empty if unknown
	Status  string // of a record
	Error   string
	Head    string // the report as JSON, without its transcript
	Last    int64  // the number of the transcript's last message, or [Whole]

	State  string
	Code   int       // the HTTP status of a refusal
	Reason string    // why the guild did not take it, or the status that the guild took instead
	Tried  time.Time // when it was last sent
	File   bool      // it was written to a file
}

const reportColumns = "session, kind, at, guild, status, error, head, last, state, code, reason, tried, file"

// Decide stores a session's report, unless one of its kind exists, and returns the stored one. Only if that is
// r, parts replace those of the session's record.
func (s *Store) Decide(ctx context.Context, r Report, parts Parts) (Report, error) {
	counts := r
	err := s.write(ctx, func(tx *sql.Tx) error {
		inserted, err := tx.Exec(`INSERT INTO reports (session, kind, at, guild, status, error, head, last, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			r.Session, r.Kind, time.Now().UTC().Format(atLayout), r.Guild, r.Status, r.Error, r.Head, r.Last, Waiting)
		if err != nil {
			return err
		}
		n, err := inserted.RowsAffected()
		if err == nil && n > 0 {
			err = put(tx, r.Session, parts)
		}
		if err == nil {
			counts, err = scan(tx.QueryRow(`SELECT `+reportColumns+` FROM reports WHERE session = ? AND kind = ?`, r.Session, r.Kind))
		}
		return err
	})
	return counts, err
}

// Report returns a session's report of a kind.
func (s *Store) Report(ctx context.Context, session string, kind Kind) (r Report, found bool, err error) {
	err = s.read(ctx, func(pool *sql.DB) (err error) {
		r, err = scan(pool.QueryRowContext(ctx, `SELECT `+reportColumns+` FROM reports WHERE session = ? AND kind = ?`, session, kind))
		found = err == nil
		return err
	})
	return r, found, err
}

// Unsent returns the reports that no guild has yet, running reports first, then by age, without their heads.
func (s *Store) Unsent(ctx context.Context) (all []Report, err error) {
	err = s.rows(ctx, func(rows *sql.Rows) error {
		r, err := scan(rows)
		all = append(all, r)
		return err
	}, `SELECT `+strings.Replace(reportColumns, "head", "''", 1)+` FROM reports WHERE state <> ? ORDER BY kind = 'record', at, session`, Sent)
	return all, err
}

// SetReportState records what became of a report. A sent record deletes a running report that no guild took.
func (s *Store) SetReportState(ctx context.Context, r Report) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE reports SET state = ?, code = ?, reason = ?, tried = ?, file = ? WHERE session = ? AND kind = ?`,
			r.State, r.Code, r.Reason, r.Tried.UTC().Format(atLayout), r.File, r.Session, r.Kind)
		if err == nil && r.Kind == Record && r.State == Sent {
			_, err = tx.Exec(`DELETE FROM reports WHERE session = ? AND kind = ? AND state <> ?`, r.Session, Running, Sent)
		}
		return err
	})
}

func scan(row interface{ Scan(...any) error }) (r Report, err error) {
	at, tried := "", ""
	err = row.Scan(&r.Session, &r.Kind, &at, &r.Guild, &r.Status, &r.Error, &r.Head, &r.Last, &r.State, &r.Code, &r.Reason, &tried, &r.File)
	r.At, _ = time.Parse(atLayout, at)
	r.Tried, _ = time.Parse(atLayout, tried)
	return r, err
}

// Body returns the report as the guild gets it, with the given head, or the report's own if head is empty.
func (s *Store) Body(ctx context.Context, r Report, head string) (size int64, open func() io.Reader, err error) {
	head = cmp.Or(head, r.Head)
	if r.Kind == Running || r.Last == Whole {
		return int64(len(head)), func() io.Reader { return strings.NewReader(head) }, nil
	}
	if !strings.HasSuffix(head, "}") || len(head) < 3 {
		return 0, nil, fmt.Errorf("the report of session %s is no JSON object", r.Session)
	}
	size, messages, err := s.Conversation(ctx, r.Session, r.Last)
	begin := head[:len(head)-1] + `,"transcript":`
	return size + int64(len(begin)) + 1, func() io.Reader {
		return io.MultiReader(strings.NewReader(begin), messages(), strings.NewReader("}"))
	}, err
}

// Parts are the parts of a session's record by name: config, facts and outcome. Each is a JSON object, and a row.
type Parts map[string]string

// Begin stores a session, its record and its guild's database, and deletes an earlier life's reports.
func (s *Store) Begin(ctx context.Context, session, guildDB string, parts Parts) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO sessions (session, guilddb) VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET guilddb = excluded.guilddb`, session, guildDB)
		if err == nil {
			_, err = tx.Exec(`DELETE FROM reports WHERE session = ?`, session)
		}
		return errors.Join(err, put(tx, session, parts))
	})
}

// Put replaces parts of a session's record and returns how many parts it has now: the database with the
// others may have been replaced. Unless lasting, the commit is cheap, so that every fact can be stored.
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

// Parts returns the parts of a session's record, none without a record.
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

// Forget removes a session's record and its sent reports. Its messages stay.
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
