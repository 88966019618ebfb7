package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"time"
	"unsafe"

	"heartbeat/internal/hosting/bigtext"
)

// Message is a message with its number, as the transcript has it and readers get it.
type Message struct {
	N       int64           `json:"n"` // from 1 on; a resumed session goes on counting
	At      time.Time       `json:"at"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"` // the object on one line
}

// atLayout is how times are written, in UTC: it sorts as text.
const atLayout = "2006-01-02T15:04:05.000Z"

// Hold has the row of a guild wait, which takes twice its size, until the caller lets go of a
// message that is large. A large row that is being written is not waited for.
func (s *Store) Hold(size int) (letGo func()) {
	if size < bigtext.Large || !s.large.TryLock() {
		return func() {}
	}
	return s.large.Unlock
}

// Append adds messages in one transaction. Those that are there already stay.
func (s *Store) Append(ctx context.Context, session string, batch []Message) error {
	return s.writeQuickly(ctx, func(conn *sql.Conn, tx *sql.Tx) error {
		for _, m := range batch {
			if err := add(ctx, conn, tx, session, m); err != nil {
				return err
			}
		}
		return nil
	})
}

const insertMessage = `INSERT INTO messages (content, session, n, at, type) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

func add(ctx context.Context, conn *sql.Conn, tx *sql.Tx, session string, m Message) error {
	at := m.At.UTC().Format(atLayout)
	if len(m.Content) >= bigtext.Large {
		err := bigtext.On(conn, func(h *bigtext.Handle) error {
			return h.Exec(ctx, insertMessage, m.Content, session, m.N, at, m.Type)
		})
		if !errors.Is(err, bigtext.ErrDriver) {
			return err
		}
	}
	_, err := tx.Exec(insertMessage, asText(m.Content), session, m.N, at, m.Type)
	return err
}

// Last is the highest number of a session's messages, 0 if there are none, and Count
// how many there are.
func (s *Store) Last(ctx context.Context, session string) (last, count int64, err error) {
	err = s.read(ctx, func(pool *sql.DB) error {
		return pool.QueryRowContext(ctx, `SELECT coalesce(max(n), 0), count(*) FROM messages WHERE session = ?`, session).Scan(&last, &count)
	})
	return last, count, err
}

// At returns the first message of a session from a number on.
func (s *Store) At(ctx context.Context, session string, from int64) (m Message, found bool, err error) {
	return s.pick(ctx, session, from, `session = ?1 AND n >= ?2`)
}

// pick returns the first of the messages that are so. A large one is read by itself.
func (s *Store) pick(ctx context.Context, session string, from int64, so string) (m Message, found bool, err error) {
	at := ""
	var content []byte
	err = s.read(ctx, func(pool *sql.DB) error {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close() // it goes back to the pool
		var row, size int64
		err = conn.QueryRowContext(ctx, `SELECT n, at, type, rowid, octet_length(content), iif(octet_length(content) < ?3, content, '') FROM messages WHERE `+so+
			` ORDER BY n LIMIT 1`, session, from, bigtext.Large).Scan(&m.N, &at, &m.Type, &row, &size, &content)
		if err != nil || size < bigtext.Large {
			return err
		}
		content = make([]byte, size)
		err = bigtext.On(conn, func(h *bigtext.Handle) error { return h.Read("main", "messages", "content", row, content) })
		if errors.Is(err, bigtext.ErrDriver) {
			err = conn.QueryRowContext(ctx, `SELECT content FROM messages WHERE rowid = ?`, row).Scan(&content)
		}
		return err
	})
	if err != nil || m.N == 0 {
		return m, false, err
	}
	m.Content = content
	m.At, err = time.Parse(atLayout, at)
	return m, true, s.fail(err)
}

// Conversation is the JSON array of the assistant's and the user's messages up to a
// number, as the client spelled them. One message at a time is in memory.
func (s *Store) Conversation(ctx context.Context, session string, last int64) (size int64, open func() io.Reader, err error) {
	size = 2
	err = s.read(ctx, func(pool *sql.DB) error {
		var count, bytes int64
		err := pool.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(octet_length(content)), 0) FROM messages
WHERE session = ? AND n <= ? AND type IN ('assistant', 'user')`, session, last).Scan(&count, &bytes)
		size = bytes + max(count-1, 0) + 2
		return err
	})
	return size, func() io.Reader { return &conversation{ctx: ctx, s: s, session: session, last: last, between: "["} }, err
}

// conversation reads a conversation.
type conversation struct {
	ctx     context.Context
	s       *Store
	session string
	n, last int64
	between string
	parts   [][]byte // what is read next
	over    bool
}

func (c *conversation) Read(b []byte) (int, error) {
	for len(c.parts) == 0 {
		if c.over {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.parts[0])
	if c.parts[0] = c.parts[0][n:]; len(c.parts[0]) == 0 {
		c.parts = c.parts[1:]
	}
	return n, nil
}

func (c *conversation) next() error {
	c.parts = nil
	m, found, err := c.s.pick(c.ctx, c.session, c.n+1, `session = ?1 AND n >= ?2 AND type IN ('assistant', 'user')`)
	if err != nil {
		return err
	}
	if c.over = !found || m.N > c.last; c.over {
		end := "]"
		if c.between == "[" {
			end = "[]"
		}
		c.parts = [][]byte{[]byte(end)}
		return nil
	}
	c.parts = [][]byte{[]byte(c.between), m.Content}
	c.n, c.between = m.N, ","
	return nil
}

// asText is b as a string, without a copy: a message may have many megabytes, and
// nobody changes it.
func asText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
