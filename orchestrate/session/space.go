package session

import (
	"strings"
	"unicode"
)

// isSpace is what JavaScript takes for white space, since the CLI trims with it:
// a byte order mark is, and U+0085 is not.
func isSpace(r rune) bool {
	return r == '\uFEFF' || r != '\u0085' && unicode.IsSpace(r)
}

func trim(s string) string { return strings.TrimFunc(s, isSpace) }
