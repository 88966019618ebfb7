package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// part is how much is written at a time, in bytes: a reader that takes so much keeps
// its connection, however long a message is.
const part = 256 << 10

// errSlow says that a reader took nothing for too long.
var errSlow = errors.New("the reader took nothing for too long")

// stream writes the messages from a number on until the session ends or the reader
// does not take them.
func (c *connection) stream(next int64) error {
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	go c.watchPeer(ctx, stop)
	var line []byte
	for m, err := range c.backend.Messages(ctx, next) {
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("read the session's messages from %d on: %w", next, err)
		}
		if ctx.Err() != nil {
			return nil
		}
		line = appendMessage(line[:0], m)
		if whole, err := c.write(line); err != nil {
			if errors.Is(err, errSlow) && whole {
				c.sayFarewell(closing{Slow: true, Next: next})
			}
			return nil
		}
		next = m.N + 1
		if cap(line) > 1<<20 { // one large message is not kept for as long as the reader stays
			line = nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return c.answer(closing{End: true, Next: next})
}

// write writes a line. whole is false if a part of it was written and the rest was not.
func (c *connection) write(line []byte) (whole bool, err error) {
	whole = true
	for len(line) > 0 {
		if err := c.conn.SetWriteDeadline(time.Now().Add(c.Patience)); err != nil {
			return whole, err
		}
		if c.ctx.Err() != nil { // asked after the deadline was moved: see serve
			return whole, c.ctx.Err()
		}
		n, err := c.conn.Write(line[:min(len(line), part)])
		line = line[n:]
		whole = whole && n == 0
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			return whole, errSlow
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return whole, err
		}
	}
	return true, nil
}

// sayFarewell writes the last line of a stream if it can be written at once.
func (c *connection) sayFarewell(last closing) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_ = c.print(last) // a reader that does not get it knows which message was its last
}

// appendMessage is json.Marshal for a message whose Raw is valid and compact already:
// it may have 64 MiB.
func appendMessage(b []byte, m Message) []byte {
	kind, _ := json.Marshal(m.Type) // no string fails
	b = append(b, `{"n":`...)
	b = strconv.AppendInt(b, m.N, 10)
	b = append(b, `,"at":"`...)
	b = m.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","type":`...)
	b = append(b, kind...)
	b = append(b, `,"content":`...)
	if len(m.Raw) == 0 {
		b = append(b, "null"...)
	}
	b = append(b, m.Raw...)
	return append(b, '}', '\n')
}
