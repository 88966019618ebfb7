// Package words spells for people what the verbs show: names, times and texts on
// one line.
package words

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// maxBrief is how much of a text a line has room for.
const maxBrief = 100

// Brief is the first line of a text that has something in it, shortened, and
// without what would disturb a terminal.
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

// Name is what people call an entry: its own id, or else the first digits of
// its entry id.
func Name(id, entryID string) string {
	if id != "" {
		return Brief(id)
	}
	return Brief(Short(entryID))
}

// Stamp is a time for people: local, to the second.
func Stamp(t time.Time) string { return t.Local().Format(time.DateTime) }

// Count says how many there are of something.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Short is the beginning of an entry id or of a session's, which is enough to
// tell it from others.
func Short(id string) string { return Line(id[:min(12, len(id))]) }
