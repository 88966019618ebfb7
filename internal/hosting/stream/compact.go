package stream

import (
	"bytes"
	"unicode/utf8"
)

// compact takes the blanks between the parts out of valid JSON, in place: a line may
// be large, and nearly always has none.
func compact(b []byte) []byte {
	to, quoted := 0, false
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case quoted && c == '\\': // the byte behind it ends no string
			b[to] = c
			to++
			i++
			c = b[i]
		case c == '"':
			quoted = !quoted
		case !quoted && isBlank(c):
			continue
		}
		b[to] = c
		to++
	}
	return b[:to]
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// validUTF8 puts U+FFFD in the place of bytes that are no UTF-8.
func validUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}
