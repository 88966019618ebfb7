package session

import (
	"strings"
	"unicode"
)

// isSpace reports whether JavaScript, with which the CLI trims, takes r for white space: it
// does so for a byte order mark, but not for U+0085.
func isSpace(r rune) bool {
	return r == '\uFEFF' || r != '\u0085' && unicode.IsSpace(r)
}

func trim(s string) string { return strings.TrimFunc(s, isSpace) }
