package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"time"
	"unsafe"
)

// Message is a numbered message of a transcript.
type Message struct {
	N       int64           `json:"n"` // from 1 on; a resumed session continues the numbers
	At      time.Time       `json:"at"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"` // the object on one line
}

// atLayout is how times are written, in UTC: it sorts as text.
const atLayout = "2006-01-02T15:04:05.000Z"

// piece is the most bytes of a message in one row: the driver and SQLite hold a text three times while they write it.
const piece = 8 << 20

// Append adds messages in one transaction. It leaves existing messages alone.
func (s *Store) Append(ctx context.Context, session string, batch []Message) error {
	return s.commit(ctx, true, func(tx *sql.Tx) error {
		for _, m := range batch {
			if err := insert(tx, session, m.N, m.At.UTC().Format(atLayout), m.Type, asText(m.Content)); err != nil {
				return err
			}
		}
		return nil
	})
}

func insert(tx *sql.Tx, session string, n int64, at, kind, content string) error {
	first := min(piece, len(content))
	_, err := tx.Exec(`INSERT INTO messages (session, n, at, type, content) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, session, n, at, kind, content[:first])
	for i := 1; err == nil && i*piece < len(content); i++ {
		_, err = tx.Exec(`INSERT INTO pieces (session, n, piece, content) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			session, n, i, content[i*piece:min((i+1)*piece, len(content))])
	}
	return err
}

// Last returns the highest number of a session's messages, 0 for none, and their count.
func (s *Store) Last(ctx context.Context, session string) (last, count int64, err error) {
	err = s.rows(ctx, func(rows *sql.Rows) error { return rows.Scan(&last, &count) },
		`SELECT coalesce(max(n), 0), count(*) FROM messages WHERE session = ?`, session)
	return last, count, err
}

// At returns the first message of a session whose number is at least from.
func (s *Store) At(ctx context.Context, session string, from int64) (m Message, found bool, err error) {
	at, more := "", 0
	var content []byte
	err = s.read(ctx, func(pool *sql.DB) error {
		err := pool.QueryRowContext(ctx, `SELECT n, at, type, content,
	(SELECT coalesce(sum(octet_length(content)), 0) FROM pieces WHERE pieces.session = messages.session AND pieces.n = messages.n)
FROM messages WHERE session = ?1 AND n >= ?2 ORDER BY n LIMIT 1`, session, from).Scan(&m.N, &at, &m.Type, &content, &more)
		if err != nil || more == 0 {
			return err
		}
		content = append(make([]byte, 0, len(content)+more), content...)
		var part sql.RawBytes
		return eachRow(ctx, pool, func(rows *sql.Rows) error {
			err := rows.Scan(&part)
			content = append(content, part...)
			return err
		}, `SELECT content FROM pieces WHERE session = ? AND n = ? ORDER BY piece`, session, m.N)
	})
	if err != nil || m.N == 0 {
		return m, false, err
	}
	m.Content = content
	m.At, err = time.Parse(atLayout, at)
	return m, true, s.wrap(err)
}

// Conversation returns a JSON array of the assistant's and the user's messages up to number last, spelled as by the
// client, and its size. Its readers hold a few messages, or a piece of one, in memory at a time.
func (s *Store) Conversation(ctx context.Context, session string, last int64) (size int64, open func() io.Reader, err error) {
	count := int64(0)
	err = s.rows(ctx, func(rows *sql.Rows) error { return rows.Scan(&count, &size) }, `WITH shown AS
(SELECT n, content FROM messages WHERE session = ?1 AND n <= ?2 AND type IN ('assistant', 'user'))
SELECT (SELECT count(*) FROM shown), coalesce((SELECT sum(octet_length(content)) FROM shown), 0) +
coalesce((SELECT sum(octet_length(content)) FROM pieces WHERE session = ?1 AND n IN (SELECT n FROM shown)), 0)`, session, last)
	size += max(count-1, 0) + 2
	return size, func() io.Reader { return &conversation{ctx: ctx, s: s, session: session, last: last, between: "["} }, err
}

type conversation struct {
	ctx      context.Context
	s        *Store
	session  string
	last     int64
	n, piece int64 // read last
	between  string
	text     bytes.Buffer // to be read next
	over     bool
}

func (c *conversation) Read(b []byte) (int, error) {
	for c.text.Len() == 0 {
		if c.over {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	return c.text.Read(b)
}

var errEnough = errors.New("enough was read")

func (c *conversation) next() error {
	var content sql.RawBytes
	n, at, between := c.n, c.piece, c.between
	err := c.s.read(c.ctx, func(pool *sql.DB) error {
		c.n, c.piece, c.between = n, at, between // damage may have cut a first attempt short
		c.text.Reset()
		return eachRow(c.ctx, pool, func(rows *sql.Rows) error {
			if err := rows.Scan(&c.n, &c.piece, &content); err != nil {
				return err
			}
			if c.piece == 0 {
				c.text.WriteString(c.between)
				c.between = ","
			}
			if c.text.Write(content); c.text.Len() >= piece {
				return errEnough
			}
			return nil
		}, `SELECT n, 0 AS piece, content FROM messages WHERE session = ?1 AND n > ?2 AND n <= ?4 AND type IN ('assistant', 'user')
UNION ALL
SELECT n, piece, content FROM pieces WHERE session = ?1 AND (n, piece) > (?2, ?3) AND n <= ?4
	AND (SELECT type FROM messages WHERE session = ?1 AND n = pieces.n) IN ('assistant', 'user')
ORDER BY n, piece`, c.session, c.n, c.piece, c.last)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	if c.over = true; c.between == "[" {
		c.text.WriteString("[")
	}
	c.text.WriteString("]")
	return err
}

// asText returns b as a string without copying it: a message may have many megabytes, and nobody changes it.
func asText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
