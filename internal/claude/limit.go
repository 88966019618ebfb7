package claude

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/words"
)

// Bounds of the times that LimitEnd believes. The client's longest limit is weekly, and a message arrives a little late.
const (
	farthestReset = 8 * 24 * time.Hour
	latestReset   = time.Minute
)

// maxResetText is how many bytes of a message are read. The client's own messages are short.
const maxResetText = 4 << 10

// LimitEnd returns when the rate limit ends, as its message says, in now's location. It believes only times from a minute
// ago to eight days ahead, in zones that this machine knows. The client leaves out the seconds, so the limit may end up
// to a minute later.
//
// In 2.1.329 the message reads "You've hit your weekly limit · resets Nov 23, 5pm (Europe/Berlin)": without the day if
// the end is less than 24 hours away, with the year if it is not this year. The other forms are those of the API, of
// gateways that the client quotes, of older releases, and of Codex ("try again at Dec 4th, 2026 11:18 AM").
func LimitEnd(message string, now time.Time) (time.Time, bool) {
	rest := strings.Fields(spellings.Replace(message[:min(len(message), maxResetText)]))
	for i, word := range rest {
		rest[i] = strings.Trim(word, ".,:;")
	}
	for ; len(rest) > 0; rest = rest[1:] {
		at, found := cueOf(rest).moment(now)
		if found && !at.Before(now.Add(-latestReset)) && !at.After(now.Add(farthestReset)) {
			return at.In(now.Location()), true
		}
	}
	return time.Time{}, false
}

// spellings splits JSON and headers into words. An older release writes "Claude AI usage limit reached|1795287600".
var spellings = strings.NewReplacer(
	`"`, " ", "'", " ", `\`, " ", "=", " ", "{", " ", "}", " ", "|", " until ", "a.m.", "am", "p.m.", "pm",
	"1st", "1", "2nd", "2", "3rd", "3", "0th", "0", "1th", "1", "2th", "2", "3th", "3", "4th", "4", "5th", "5", "6th", "6", "7th", "7", "8th", "8", "9th", "9",
	"resets_at", "resets at", "resetsAt", "resets at", "retry_after", "retry after", "retry-after", "retry after", "Retry-After", "retry after",
)

// cue is what announces a time, such as "resets at" or "retry after".
type cue struct {
	at      bool     // a moment may follow
	in      bool     // a span may follow
	seconds bool     // the span may be a number without a unit
	rest    []string // the words after the cue
}

// cueOf reads a cue that begins with the first word. A number after a word such as "reset" may mean anything ("reset 3
// times"), so such words need a preposition.
func cueOf(words []string) (c cue) {
	switch strings.ToLower(words[0]) {
	case "resets", "until":
		c.at = true
	case "available":
		c.at = len(words) > 1 && strings.EqualFold(words[1], "again")
	case "wait":
		c.in = true
	case "retry":
		c.seconds = true
	case "reset", "retrying", "again", "access":
	default:
		return cue{}
	}
	for c.rest = words[1:]; len(c.rest) > 0; c.rest = c.rest[1:] {
		switch strings.ToLower(c.rest[0]) {
		case "at", "on":
			c.at, c.in = true, false
		case "in":
			c.at, c.in = false, true
		case "after":
			c.at, c.in = true, true
		case "", "again", "it", "time", "about", "another", "for":
		default:
			return c
		}
	}
	return cue{}
}

// moment reads a time in any form that the cue allows.
func (c cue) moment(now time.Time) (time.Time, bool) {
	if len(c.rest) == 0 {
		return time.Time{}, false
	}
	if at, ok := epoch(c.rest[0]); ok && c.at {
		return at, true
	}
	if span, ok := span(c.rest, c.seconds); ok && c.in {
		return now.Add(span), true
	}
	if !c.at {
		return time.Time{}, false
	}
	return wall(c.rest, now)
}

func epoch(word string) (time.Time, bool) {
	n, err := strconv.ParseInt(word, 10, 64)
	switch {
	case err == nil && len(word) == 10:
		return time.Unix(n, 0), true
	case err == nil && len(word) == 13:
		return time.UnixMilli(n), true
	}
	return time.Time{}, false
}

// span reads a duration such as "2h 30m", "5 minutes" or "1 hour and 5 minutes". If bare is set, a number without a unit
// counts seconds.
func span(words []string, bare bool) (sum time.Duration, read bool) {
	for len(words) > 0 && sum <= farthestReset {
		word := strings.ToLower(words[0])
		words = words[1:]
		if d, err := time.ParseDuration(word); err == nil && d >= 0 && word != "0" {
			sum, read = sum+min(d, 2*farthestReset), true
			continue
		}
		if read && word == "and" {
			continue
		}
		number := word[:len(word)-len(strings.TrimLeft(word, "0123456789."))]
		unit, next := word[len(number):], ""
		if len(words) > 0 {
			next = strings.ToLower(words[0])
		}
		if word == "a" || word == "an" {
			number, unit = "1", ""
		}
		amount, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil:
			return sum, read
		case unit == "" && unitOf(next) > 0:
			unit, words = next, words[1:]
		case unit == "" && bare && !read && (next == "" || next[0] < 'a' || next[0] > 'z'):
			unit = "s"
		}
		if unitOf(unit) == 0 {
			return sum, read
		}
		sum, read = sum+time.Duration(min(amount*float64(unitOf(unit)), float64(2*farthestReset))), true
	}
	return sum, read
}

func unitOf(word string) time.Duration {
	switch word {
	case "ms", "millisecond", "milliseconds":
		return time.Millisecond
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	case "week", "weeks":
		return 7 * 24 * time.Hour
	}
	return 0
}

// Layouts of a date, and of a time of day after it or alone, for text in capitals without commas.
var (
	dates  = []string{"", "Jan 2", "January 2", "Jan 2 2006", "January 2 2006", "2006-01-02"}
	clocks = []string{"", "3PM", "3:04PM", "3 PM", "3:04 PM", "15:04", "15:04:05"}
	whole  = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "Mon 2 Jan 2006 15:04:05 GMT"}
)

const maxWhole = 6 // the most words that one of these layouts has

// wall reads a date, a time of day or both, with their zone: "3:30pm (America/Los_Angeles)", "Nov 23, 5pm",
// "2026-11-21 18:00 UTC", "UTC midnight".
func wall(words []string, now time.Time) (time.Time, bool) {
	words = slices.DeleteFunc(slices.Clone(words[:min(len(words), maxWhole+2)]), func(w string) bool { return strings.EqualFold(w, "at") })
	if utc := len(words) > 1 && isUTC(words[0]); utc {
		words[0], words[1] = words[1], words[0]
	}
	for n := min(len(words), maxWhole); n > 0; n-- {
		text := strings.ReplaceAll(strings.ToUpper(strings.Join(words[:n], " ")), "MIDNIGHT", "12AM")
		for _, layout := range whole {
			if at, err := time.Parse(layout, text); err == nil {
				return at, true
			}
		}
		for _, date := range dates {
			for _, clock := range clocks {
				if at, err := time.Parse(strings.TrimSpace(date+" "+clock), text); err == nil {
					loc, ok := zone(words[n:], now.Location())
					return next(at, date != "", now.In(loc)), ok
				}
			}
		}
	}
	return time.Time{}, false
}

// next returns when clocks in now's location show a time, from about now on: on its date, or on any day if it has none.
func next(wall time.Time, dated bool, now time.Time) time.Time {
	year, month, day := now.Date()
	for i := -1; i <= 1; i++ {
		y, m, d := year, month, day+i
		switch {
		case wall.Year() > 0:
			y, m, d = wall.Date()
		case dated:
			y, m, d = year+i, wall.Month(), wall.Day()
		}
		shown := time.Date(y, m, d, wall.Hour(), wall.Minute(), wall.Second(), 0, time.UTC)
		if dated && shown.Day() != wall.Day() {
			continue // no 29 February
		}
		for _, at := range words.Showing(shown, now.Location()) {
			if !at.Before(now.Add(-latestReset)) {
				return at
			}
		}
	}
	return time.Time{}
}

// zone reads the zone of a time: an IANA name in parentheses, as the client writes it, or an abbreviation. Without a zone
// the time is local. The result is false for an unknown zone, because a guess could be hours off.
func zone(words []string, local *time.Location) (*time.Location, bool) {
	if len(words) == 0 {
		return local, true
	}
	name, is := words[0], len(words[0]) > 2 && words[0] == strings.ToUpper(words[0]) && words[0][0] >= 'A' && words[0][0] <= 'Z'
	if inner, opened := strings.CutPrefix(name, "("); opened {
		name, is = strings.CutSuffix(inner, ")")
	}
	switch {
	case isUTC(name):
		return time.UTC, true
	case !is:
		return local, true
	case strings.EqualFold(name, "local"):
		return local, false
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return local, false
	}
	return loc, true
}

func isUTC(word string) bool { return strings.EqualFold(word, "UTC") || strings.EqualFold(word, "GMT") }
