package flat

import (
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// maxNesting is how deeply encoding/json lets JSON be nested.
const maxNesting = 10_000

// scanner reads JSON once, and validates it as encoding/json does.
type scanner struct {
	text string
	at   int
	most int // how deeply the text may be nested
}

// scanObject calls member for each member of an object, with the name and the value as they are spelled, until member
// returns false or the JSON is invalid; ok is false then. isObject is false for any other value.
func scanObject(text string, member func(name, value string) bool) (isObject, ok bool) {
	s := scanner{text: text, most: maxNesting}
	s.space()
	if s.peek() == '{' {
		isObject, ok = true, s.object(1, member)
	} else {
		ok = s.value(0)
	}
	s.space()
	return isObject, ok && s.at == len(text)
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) takes(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

func (s *scanner) value(depth int) bool {
	switch c := s.peek(); c {
	case '{':
		return s.object(depth+1, nil)
	case '[':
		return s.array(depth + 1)
	case '"':
		return s.quoted()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scanner) object(depth int, member func(name, value string) bool) bool {
	return s.list(depth, '}', func() bool {
		name := s.at
		if !s.quoted() {
			return false
		}
		nameEnd := s.at
		if s.space(); !s.takes(':') {
			return false
		}
		s.space()
		value := s.at
		return s.value(depth) && (member == nil || member(s.text[name:nameEnd], s.text[value:s.at]))
	})
}

func (s *scanner) array(depth int) bool {
	return s.list(depth, ']', func() bool { return s.value(depth) })
}

// list reads an array or object. item reads what stands between two commas.
func (s *scanner) list(depth int, end byte, item func() bool) bool {
	s.at++
	if s.space(); s.takes(end) {
		return depth <= s.most
	}
	for depth <= s.most && item() {
		if s.space(); s.takes(end) {
			return true
		}
		if !s.takes(',') {
			return false
		}
		s.space()
	}
	return false
}

func (s *scanner) quoted() bool {
	if !s.takes('"') {
		return false
	}
	for i := s.at; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c > '\\': // most letters
		case c == '"':
			s.at = i + 1
			return true
		case c == '\\':
			if s.at = i + 1; !s.escape() {
				return false
			}
			i = s.at - 1
		case c < ' ':
			return false
		}
	}
	return false
}

// escape skips what follows a backslash.
func (s *scanner) escape() bool {
	c := s.peek()
	s.at++
	if c != 'u' {
		return c != 0 && strings.IndexByte(`"\/bfnrt`, c) >= 0
	}
	for range 4 {
		switch c := s.peek(); {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
			s.at++
		default:
			return false
		}
	}
	return true
}

func (s *scanner) word(w string) bool {
	if !strings.HasPrefix(s.text[s.at:], w) {
		return false
	}
	s.at += len(w)
	return true
}

func (s *scanner) number() bool {
	s.takes('-')
	if !s.takes('0') && !s.digits() {
		return false
	}
	if s.takes('.') && !s.digits() {
		return false
	}
	if !s.takes('e') && !s.takes('E') {
		return true
	}
	if !s.takes('+') {
		s.takes('-')
	}
	return s.digits()
}

func (s *scanner) digits() bool {
	from := s.at
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at > from
}

// Each calls f for every member of an object, with the name and the value as they are spelled, up to the first invalid
// JSON. It reports whether the whole object is valid, and allocates nothing, whatever the size of the object.
func Each(object []byte, f func(name, value []byte)) bool {
	bytesOf := func(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
	isObject, ok := scanObject(unsafe.String(unsafe.SliceData(object), len(object)), func(name, value string) bool {
		f(bytesOf(name), bytesOf(value))
		return true
	})
	return isObject && ok
}

// textPart is how many bytes of a string are decoded at once.
const textPart = 64 << 10

// WriteText writes the text of a valid JSON string, part by part. Invalid UTF-8 becomes U+FFFD.
func WriteText(w io.Writer, quoted []byte) error {
	rest := quoted[1 : len(quoted)-1]
	part := make([]byte, 0, textPart+64)
	for len(rest) > 0 {
		n := partEnd(rest)
		part = append(append(append(part[:0], '"'), rest[:n]...), '"')
		var text string
		if err := json.Unmarshal(part, &text); err != nil {
			return err
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// partEnd returns where a string may be cut: not inside an escape, a surrogate pair or a rune.
func partEnd(s []byte) int {
	i := 0
	for i < len(s) && i < textPart {
		switch {
		case s[i] != '\\':
			i++
		case s[i+1] != 'u':
			i += 2
		case len(s) >= i+12 && (s[i+2]|0x20) == 'd' && s[i+6] == '\\' && s[i+7] == 'u':
			i += 12
		default:
			i += 6
		}
	}
	for i < len(s) && !utf8.RuneStart(s[i]) && i < textPart+utf8.UTFMax {
		i++
	}
	return min(i, len(s))
}
