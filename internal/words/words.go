// Package words formats what the commands show to people: names, times, sizes, and
// foreign text that is safe on a terminal.
package words

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// maxBrief is how many characters of a text fit on a line.
const maxBrief = 100

// Brief returns the first line of a text that is not blank, shortened, and safe for
// a terminal.
func Brief(s string) string {
	s = strings.TrimSpace(s)
	line, rest, _ := strings.Cut(s, "\n")
	if len(line) > 8*maxBrief { // no need to look at all of it
		line, rest = line[:8*maxBrief], "more"
	}
	var b strings.Builder
	n := 0
	for _, r := range strings.ToValidUTF8(strings.TrimSpace(line), "\uFFFD") {
		if n++; n > maxBrief {
			rest = "more"
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	if rest != "" {
		b.WriteString(" ...")
	}
	return Plain(b.String())
}

// Name returns an entry's id, or the first digits of its entry id if it has none.
func Name(id, entryID string) string {
	if id != "" {
		return Brief(id)
	}
	return Brief(Short(entryID))
}

// Stamp formats a time: local, to the second.
func Stamp(t time.Time) string { return t.Local().Format(time.DateTime) }

// Count is a number with its noun: 1 entry, 3 entries.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Short returns the first 12 characters of an entry's or a session's id, which are
// enough to tell it from others.
func Short(id string) string { return Line(id[:min(12, len(id))]) }
