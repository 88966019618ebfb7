package guild

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxMember is the largest value, in bytes, of a member that an envelope keeps, and
// maxDepth how deep a report may nest.
const (
	maxMember = 1 << 20
	maxDepth  = 10_000
)

// Envelope is what a report says of itself, whatever the size of its transcript.
type Envelope struct {
	SessionID string
	Status    string // empty in a running report
	Error     string

	spans map[string]span // where the values of the members above are
	start int64           // behind the opening brace
	bare  bool            // the object has no members
}

// span is where a value is in the report, in bytes.
type span struct{ from, to int64 }

// ReadEnvelope reads a report and keeps only its envelope. It refuses what is not one
// whole JSON object: brackets and strings are followed to the end, so a report that was
// cut off is noticed. It also refuses a member of the envelope that comes twice or is no
// string, since readers would differ about it.
func ReadEnvelope(r io.Reader) (*Envelope, error) {
	s := &scanner{in: bufio.NewReaderSize(r, 1<<16), envelope: Envelope{spans: map[string]span{}}}
	if err := s.object(); err != nil {
		return nil, fmt.Errorf("read the report, byte %d: %w", s.at, err)
	}
	return &s.envelope, nil
}

// scanner follows JSON from byte to byte.
type scanner struct {
	in       *bufio.Reader
	at       int64 // bytes read
	envelope Envelope
}

var errCut = errors.New("it ends early")

func (s *scanner) next() (byte, error) {
	c, err := s.in.ReadByte()
	if err == io.EOF {
		return 0, errCut
	}
	if err == nil {
		s.at++
	}
	return c, err
}

// token is the next byte that is no blank.
func (s *scanner) token() (byte, error) {
	for {
		c, err := s.next()
		if err != nil || !blank(c) {
			return c, err
		}
	}
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (s *scanner) object() error {
	c, err := s.token()
	if err != nil {
		return err
	}
	if c != '{' {
		return fmt.Errorf("it starts with %q, not with a brace", c)
	}
	s.envelope.start = s.at
	if err := s.members(); err != nil {
		return err
	}
	switch c, err := s.token(); {
	case err == errCut:
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%q follows the object", c)
	}
}

func (s *scanner) members() error {
	c, err := s.token()
	if err != nil {
		return err
	}
	if c == '}' {
		s.envelope.bare = true
		return nil
	}
	for {
		if c != '"' {
			return fmt.Errorf("a member's name starts with %q", c)
		}
		if c, err = s.member(); err != nil {
			return err
		}
		switch c {
		case '}':
			return nil
		case ',':
			if c, err = s.token(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q follows a member", c)
		}
	}
}

// member reads a member from behind the first quote of its name, and returns the first
// byte that follows it.
func (s *scanner) member() (byte, error) {
	quoted := &keep{raw: []byte{'"'}, limit: maxMember}
	if err := s.text(quoted); err != nil {
		return 0, err
	}
	var name string
	if !quoted.over {
		if err := json.Unmarshal(quoted.raw, &name); err != nil {
			return 0, err
		}
	}
	c, err := s.token()
	if err != nil {
		return 0, err
	}
	if c != ':' {
		return 0, fmt.Errorf("%q follows a member's name", c)
	}
	if c, err = s.token(); err != nil {
		return 0, err
	}
	kept := &keep{}
	if name == "sessionId" || name == "status" || name == "error" {
		kept.limit = maxMember
	}
	from := s.at - 1
	to, c, err := s.value(c, kept)
	if err != nil || kept.limit == 0 {
		return c, err
	}
	return c, s.envelope.set(name, kept, span{from, to})
}

// value reads a value from its first byte on. It returns where the value ends and the
// first byte behind it that is no blank.
func (s *scanner) value(c byte, kept *keep) (end int64, behind byte, err error) {
	kept.add(c)
	switch c {
	case '"':
		err = s.text(kept)
	case '{', '[':
		err = s.nested(c, kept)
	default:
		return s.scalar(c, kept)
	}
	if err != nil {
		return 0, 0, err
	}
	end = s.at
	behind, err = s.token()
	return end, behind, err
}

func (s *scanner) scalar(c byte, kept *keep) (end int64, behind byte, err error) {
	for n := 0; inScalar(c); n++ {
		if n == maxMember {
			return 0, 0, errors.New("a number is far too long")
		}
		end = s.at
		if c, err = s.next(); err != nil {
			return 0, 0, err
		}
		if inScalar(c) {
			kept.add(c)
		}
	}
	if end == 0 {
		return 0, 0, fmt.Errorf("a value starts with %q", c)
	}
	if blank(c) {
		c, err = s.token()
	}
	return end, c, err
}

func inScalar(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// text reads a string from behind its first quote.
func (s *scanner) text(kept *keep) error {
	for {
		if kept.limit == 0 {
			s.skipPlain()
		}
		c, err := s.next()
		if err != nil {
			return err
		}
		kept.add(c)
		switch c {
		case '"':
			return nil
		case '\\':
			if c, err = s.next(); err != nil {
				return err
			}
			kept.add(c)
		}
	}
}

// skipPlain skips what is in memory of a string up to its end or an escape. Most of a
// transcript is skipped here.
func (s *scanner) skipPlain() {
	ahead, _ := s.in.Peek(s.in.Buffered()) // an error shows at the next read
	n := 0
	for n < len(ahead) && ahead[n] != '"' && ahead[n] != '\\' {
		n++
	}
	_, _ = s.in.Discard(n) // it is in memory
	s.at += int64(n)
}

// nested reads an object or a list from behind its bracket.
func (s *scanner) nested(bracket byte, kept *keep) error {
	closing := map[byte]byte{'{': '}', '[': ']'}
	open := []byte{closing[bracket]}
	for len(open) > 0 {
		c, err := s.next()
		if err != nil {
			return err
		}
		kept.add(c)
		switch c {
		case '"':
			if err := s.text(kept); err != nil {
				return err
			}
		case '{', '[':
			if len(open) == maxDepth {
				return fmt.Errorf("it nests deeper than %d", maxDepth)
			}
			open = append(open, closing[c])
		case '}', ']':
			if open[len(open)-1] != c {
				return fmt.Errorf("%q closes what was opened otherwise", c)
			}
			open = open[:len(open)-1]
		}
	}
	return nil
}

// keep holds the bytes of a value up to its limit.
type keep struct {
	raw   []byte
	limit int
	over  bool
}

func (k *keep) add(c byte) {
	if len(k.raw) < k.limit {
		k.raw = append(k.raw, c)
	} else {
		k.over = true
	}
}

func (e *Envelope) set(name string, kept *keep, at span) error {
	if _, again := e.spans[name]; again {
		return fmt.Errorf("%q comes twice", name)
	}
	if kept.over {
		return fmt.Errorf("%q is over %d bytes", name, maxMember)
	}
	e.spans[name] = at
	if name == "error" && string(kept.raw) == "null" {
		return nil
	}
	into := map[string]*string{"sessionId": &e.SessionID, "status": &e.Status, "error": &e.Error}[name]
	if kept.raw[0] != '"' {
		return fmt.Errorf("%q is no string", name)
	}
	if err := json.Unmarshal(kept.raw, into); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}

// restated is the report with another status and error.
func (e *Envelope) restated(b Body, status, reason string) *payload {
	quotedStatus, quotedReason := quote(status), quote(reason)
	var parts []part
	at := int64(0)
	put := func(to int64, text string, next int64) {
		parts = append(parts, part{from: at, to: to}, part{from: -1, text: text})
		at = next
	}
	var missing string
	for name, value := range map[string]string{"status": quotedStatus, "error": quotedReason} {
		if _, there := e.spans[name]; !there {
			missing += quote(name) + ":" + value + ","
		}
	}
	if missing != "" {
		if e.bare {
			missing = missing[:len(missing)-1]
		}
		put(e.start, missing, e.start)
	}
	first, second := "status", "error"
	if e.spans[second].from < e.spans[first].from {
		first, second = second, first
	}
	for _, name := range []string{first, second} {
		if s, there := e.spans[name]; there {
			put(s.from, map[string]string{"status": quotedStatus, "error": quotedReason}[name], s.to)
		}
	}
	return b.splice(append(parts, part{from: at, to: b.Size}))
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string always has a JSON form
	return string(b)
}
