// Package words formats what the commands show to people: names, times, sizes, and foreign text
// made safe for a terminal.
package words

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxBrief is how many characters of a text fit on a line.
const maxBrief = 100

// Brief returns a text's first non-blank line, shortened and safe for a terminal.
func Brief(s string) string {
	s = strings.TrimSpace(s)
	line, rest, _ := strings.Cut(s, "\n")
	if len(line) > 8*maxBrief { // all that can be shown is in the first bytes
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

// Name returns an entry's id, or the short entry id if it has none. Generated ids are shortened too: nobody reads them.
func Name(id, entryID string) string {
	switch {
	case id == "":
		return Short(entryID)
	case isGenerated(id):
		return Short(id)
	}
	return Brief(id)
}

// isGenerated reports whether an id looks generated: a UUID, a hash, random bytes in hex, or an id that send made.
func isGenerated(id string) bool {
	return len(id) >= 32 && strings.Trim(strings.ToLower(id), "0123456789abcdef-") == "" ||
		len(id) == 26 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Short returns the short form of an entry id or a session id: the first 12 characters, or the first group of a UUID,
// two groups if it begins with the time. That is enough to tell ids apart, and the verbs accept it in place of the id.
func Short(id string) string {
	n := 12
	if len(id) == len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") && id[8] == '-' && isGenerated(id) {
		n = 8
		if id[14] == '7' { // its first group changes only once a minute
			n = 13
		}
	}
	for at := range id {
		if n == 0 {
			return Line(id[:at])
		}
		n--
	}
	return Line(id)
}

// Stamp formats a local time, to the second.
func Stamp(t time.Time) string { return t.Local().Format(time.DateTime) }

// Clock formats a time for a narrow column. The present year is left out.
func Clock(now, t time.Time) string {
	if t.Local().Year() == now.Local().Year() {
		return t.Local().Format(time.Stamp)
	}
	return Stamp(t)
}

// Showing returns when clocks in a place show the date and time that wall has in UTC: twice if they are put back over
// it. If they are put forward over it, Showing returns when they would have shown it.
func Showing(wall time.Time, place *time.Location) (moments []time.Time) {
	var offsets [2]time.Duration // before and after any change of that day
	for i, near := range []time.Duration{-day, day} {
		_, seconds := wall.Add(near).In(place).Zone()
		offsets[i] = time.Duration(seconds) * time.Second
	}
	for _, offset := range slices.Compact(offsets[:]) {
		at := wall.Add(-offset).In(place)
		if _, seconds := at.Zone(); time.Duration(seconds)*time.Second == offset {
			moments = append(moments, at)
		}
	}
	if moments == nil {
		return []time.Time{wall.Add(-offsets[0]).In(place)}
	}
	return moments
}

// Count formats a number with its noun: 1 entry, 3 entries.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Size formats a number of bytes: 512 B, 1.5 kB, 12.3 MB. The units are powers of 1000, as disks are sold.
func Size(bytes int64) string {
	if bytes > -1000 && bytes < 1000 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	n, units := float64(bytes), "kMGTPE"
	for n /= 1000; (n >= 999.95 || n <= -999.95) && len(units) > 1; n /= 1000 {
		units = units[1:]
	}
	return fmt.Sprintf("%.1f %cB", n, units[0])
}

// Took formats a duration in the two largest units that matter to people: 250ms, 1.2s, 45s, 5m 12s, 3h 5m, 3d 4h.
func Took(d time.Duration) string {
	d = max(0, d) // a clock may be set back
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute-time.Second/2:
		return d.Round(time.Second).String()
	case d < time.Hour-time.Second/2:
		return twoUnits(d.Round(time.Second), time.Minute, "m", time.Second, "s")
	case d < day-time.Minute/2:
		return twoUnits(d.Round(time.Minute), time.Hour, "h", time.Minute, "m")
	}
	return twoUnits(d.Round(time.Hour), day, "d", time.Hour, "h")
}

// Ago formats in one unit how long ago something happened: 45s ago, 3m ago, 12d ago.
func Ago(now, then time.Time) string {
	d := now.Sub(then)
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d >= unit.length {
			return fmt.Sprintf("%d%s ago", d/unit.length, unit.name)
		}
	}
	return "just now" // or the clock was set back
}

const day = 24 * time.Hour

func twoUnits(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d%s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d%s", rest, smallName)
	}
	return text
}

// Milliseconds returns n milliseconds as a duration, at most a hundred years: a duration cannot hold every n.
func Milliseconds(n float64) time.Duration { return time.Duration(min(n*1e6, float64(36500*day))) }

// maxDays is the greatest whole number of days that a duration can hold.
const maxDays = float64(math.MaxInt64 / day)

// ParseSpan parses a length of time as a person types it: seconds (300, 0.5), a Go duration (5m),
// or days (30d, 1d12h). It may be negative.
func ParseSpan(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(seconds) < math.MaxInt64/1e9 {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	count, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseFloat(count, 64)
	if err != nil || !(days >= 0 && days <= maxDays) { // NaN fails both comparisons
		return 0, errors.New("not a number of days")
	}
	d := time.Duration(days * float64(day))
	if rest == "" {
		return d, nil
	}
	within, err := time.ParseDuration(rest)
	if err == nil && (within < 0 || d+within < d) {
		err = errors.New("out of range")
	}
	return d + within, err
}

// Shell formats words as a shell command line that a person can paste.
func Shell(words ...string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./=:,@%+", r)
	}
	quoted := slices.Clone(words)
	for i, word := range words {
		if word == "" || strings.ContainsFunc(word, special) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
