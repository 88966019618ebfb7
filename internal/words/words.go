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
		return Plain(strings.TrimRight(b.String(), " ") + " ...")
	}
	return Plain(b.String())
}

// Name returns an entry's id, or the short form of its entry id if it has none. An
// id that a program drew is shortened, too: nobody reads it.
func Name(id, entryID string) string {
	switch {
	case id == "":
		return Short(entryID)
	case isDrawn(id):
		return Short(id)
	}
	return Brief(id)
}

// isDrawn recognises UUIDs, hashes and random bytes in hex, and the ids of send.
func isDrawn(id string) bool {
	return len(id) >= 32 && strings.Trim(strings.ToLower(id), "0123456789abcdef-") == "" ||
		len(id) == 26 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Short returns the one short form of an entry id and of a session id: its first 12
// characters, or the first group of a UUID. It is enough to tell it from others, and
// the verbs take it in place of the whole id.
func Short(id string) string {
	n := 12
	if len(id) == len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") && id[8] == '-' && isDrawn(id) {
		n = 8
	}
	for at := range id {
		if n == 0 {
			return Line(id[:at])
		}
		n--
	}
	return Line(id)
}

// Stamp formats a time: local, to the second.
func Stamp(t time.Time) string { return t.Local().Format(time.DateTime) }

// Clock formats a time for a narrow column: without its year if that is this year.
func Clock(now, t time.Time) string {
	if t.Local().Year() == now.Local().Year() {
		return t.Local().Format(time.Stamp)
	}
	return Stamp(t)
}

// Count is a number with its noun: 1 entry, 3 entries.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
