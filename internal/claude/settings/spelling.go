package settings

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// A shell line is quoted and unquoted in its JSON spelling, between the quotes of the string: so whatever a person wrote,
// such as \u003c, is there again byte for byte when our part goes.

// unit is one character of a JSON string.
type unit struct {
	raw string // as it is spelled
	c   byte   // the character, or other for one that means nothing to a shell
}

// other stands for all characters beyond ASCII.
const other = 0x80

// units splits the spelling of a JSON string, without its quotes.
func units(spelling string) []unit {
	var all []unit
	for rest := spelling; rest != ""; {
		u := firstUnit(rest)
		all, rest = append(all, u), rest[len(u.raw):]
	}
	return all
}

func firstUnit(s string) unit {
	switch {
	case s[0] >= utf8.RuneSelf:
		return unit{s[:1], other}
	case s[0] != '\\' || len(s) == 1:
		return unit{s[:1], s[0]}
	case s[1] != 'u' || len(s) < 6:
		c := s[1]
		if i := strings.IndexByte("bfnrt", c); i >= 0 {
			c = "\b\f\n\r\t"[i]
		}
		return unit{s[:2], c}
	}
	code, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil || code >= utf8.RuneSelf {
		return unit{s[:6], other}
	}
	return unit{s[:6], byte(code)}
}

// spelling returns text as a JSON string is spelled, without its quotes.
func spelling(text string) string {
	spelled := string(hujson.String(text))
	return spelled[1 : len(spelled)-1]
}

// meant is the opposite of spelling, for any spelling.
func meant(spelling string) string {
	var text string
	if err := json.Unmarshal([]byte(`"`+spelling+`"`), &text); err != nil {
		return "" // not from a file that was parsed
	}
	return text
}

// quoted returns a word for a shell, in quotes.
func quoted(spelling string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, u := range units(spelling) {
		if u.c == '\'' {
			b.WriteString(`'\\` + u.raw + `'`)
			continue
		}
		b.WriteString(u.raw)
	}
	b.WriteByte('\'')
	return b.String()
}

// worded is quoted, but for a word that needs no quotes.
func worded(spelling string) string {
	for _, u := range units(spelling) {
		if !plainInShell(u.c) {
			return quoted(spelling)
		}
	}
	if spelling == "" {
		return quoted(spelling)
	}
	return spelling
}

// plainInShell reports whether a character stands for itself in a shell's word.
func plainInShell(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_@%+=:,./-", c) >= 0
}

// simpleWords splits a shell line into the spellings of its words, without their quotes, and a comment at its end. It
// reports whether the line is one command of words that are plain or quoted as quoted does it: any other line is a
// person's.
func simpleWords(spelling string) (words []string, comment string, simple bool) {
	const (
		between = iota
		within
		quote
	)
	state := between
	var word strings.Builder
	all := units(spelling)
	for i := 0; i < len(all); i++ {
		u := all[i]
		switch {
		case state == quote && u.c == '\'':
			state = within
		case state == quote:
			word.WriteString(u.raw)
		case u.c == '\'':
			state = quote
		case u.c == '\\' && i+1 < len(all) && all[i+1].c == '\'':
			i++
			word.WriteString(all[i].raw)
			state = within
		case plainInShell(u.c):
			word.WriteString(u.raw)
			state = within
		case u.c == ' ' || u.c == '\t':
			if state == within {
				words = append(words, word.String())
				word.Reset()
			}
			state = between
		case u.c == '#' && state == between:
			lines := slices.ContainsFunc(all[i:], func(u unit) bool { return u.c == '\n' })
			return words, joinRaw(all[i:]), !lines
		default:
			return nil, "", false
		}
	}
	if state == within {
		words = append(words, word.String())
	}
	return words, "", state != quote
}

func joinRaw(all []unit) string {
	var b strings.Builder
	for _, u := range all {
		b.WriteString(u.raw)
	}
	return b.String()
}
