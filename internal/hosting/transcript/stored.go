package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"heartbeat/internal/flat"
)

// Stored is a message with its number.
type Stored struct {
	N       int64           `json:"n"` // from 1 on; a resumed session goes on counting
	At      time.Time       `json:"at"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"` // on one line
}

// atLayout is how times are written, in UTC: it sorts as text.
const atLayout = "2006-01-02T15:04:05.000Z"

// maxHead bounds what comes before a spool line's content. Types are short.
const maxHead = 4 << 10

var contentMark = []byte(`,"content":`)

const lineEnd = "}\n"

// head is the part of a spool line before the content.
func (s Stored) head() ([]byte, error) {
	kind, err := flat.JSON(s.Type)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, 128)
	b = append(b, `{"n":`...)
	b = strconv.AppendInt(b, s.N, 10)
	b = append(b, `,"at":"`...)
	b = s.At.UTC().AppendFormat(b, atLayout)
	b = append(b, `","type":`...)
	b = append(b, kind...)
	b = append(b, `,"size":`...)
	b = strconv.AppendInt(b, int64(len(s.Content)), 10)
	return append(b, contentMark...), nil
}

// parseHead reads the head that a line starts with: the message without its content,
// the length of the head and that of the content.
func parseHead(line []byte) (s Stored, length int, size int64, err error) {
	line = line[:min(len(line), maxHead)]
	mark := bytes.Index(line, contentMark)
	if mark < 0 || bytes.IndexByte(line[:mark], '\n') >= 0 {
		return s, 0, 0, fmt.Errorf("not a line of a spool: %.80q", line)
	}
	m, err := flat.Parse(append(bytes.Clone(line[:mark]), '}'))
	if err != nil {
		return s, 0, 0, err
	}
	s = Stored{N: m.Int("n"), Type: m.String("type")}
	size = m.Int("size")
	s.At, err = time.Parse(atLayout, m.String("at"))
	switch {
	case m.Err() != nil:
		return s, 0, 0, m.Err()
	case err != nil:
		return s, 0, 0, err
	case s.N < 1 || size < 2:
		return s, 0, 0, fmt.Errorf("not a line of a spool: %.80q", line)
	}
	return s, mark + len(contentMark), size, nil
}
