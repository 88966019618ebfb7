package limit

import (
	"strings"
	"time"
)

// The times that End believes: the longest of the client's limits is weekly, and a
// message arrives a little later than it was written.
const (
	farthestReset = 8 * 24 * time.Hour
	latestReset   = time.Minute
)

// maxResetText is how much of a message is read. The client's own are short.
const maxResetText = 4 << 10

// End returns when the limit ends that a rate limit's message names, in now's
// location. It believes only times from a minute ago to eight days ahead, in zones
// that this machine knows. The client leaves out the seconds, so the limit may end
// up to a minute later.
//
// In 2.1.329 the message reads "You've hit your weekly limit · resets Nov 23,
// 5pm (Europe/Berlin)": without the day if that is less than 24 hours away, with
// the year if it is not this one. The other forms are those of the API, of gateways
// that the client quotes, and of older releases.
func End(message string, now time.Time) (time.Time, bool) {
	message = message[:min(len(message), maxResetText)]
	for w := (words{text: message}); ; {
		before := w
		word := w.next()
		if word.kind == end {
			return time.Time{}, false
		}
		at, found := time.Time{}, false
		if word.text == "|" {
			at, found = w.epoch() // "Claude AI usage limit reached|1795287600"
		} else if c := before.cue(); c != (cue{}) {
			at, found = c.rest.moment(c, now)
		}
		if found && !at.Before(now.Add(-latestReset)) && !at.After(now.Add(farthestReset)) {
			return at.In(now.Location()), true
		}
	}
}

// cue is what announces a time, such as "resets at" or "retry after".
type cue struct {
	at      bool  // a moment may follow
	in      bool  // a span may follow
	seconds bool  // the span may be a number without a unit
	rest    words // the text after the cue
}

// cue reads a cue that begins with the next word, or returns the zero cue. A number
// after a word such as "reset" may mean anything ("reset 3 times"), so those words
// need a preposition.
func (w words) cue() cue {
	var c cue
	switch strings.ToLower(w.next().text) {
	case "resets", "resetsat", "until":
		c.at = true
	case "available":
		c.at = w.skip("again")
	case "wait":
		c.in = true
	case "retry", "retryafter":
		c.seconds = true
	case "reset", "retrying", "again", "access":
	default:
		return cue{}
	}
	for {
		c.rest = w
		switch word := w.next(); strings.ToLower(word.text) {
		case "at", "on":
			c.at, c.in = true, false
		case "in":
			c.at, c.in = false, true
		case "after", ":", "=":
			c.at, c.in = true, true
		case "it", "time", "about", "another", "for", `"`, "'", `\`, "_", "-":
		default:
			if !c.at && !c.in {
				return cue{}
			}
			return c
		}
	}
}

// moment reads a time in any form that the cue allows.
func (w words) moment(c cue, now time.Time) (time.Time, bool) {
	if at, ok := w.epoch(); ok && c.at {
		return at, true
	}
	if span, ok := w.span(c.seconds); ok && c.in {
		return now.Add(span), true
	}
	if !c.at {
		return time.Time{}, false
	}
	return w.wall(now)
}

// epoch reads a Unix time in seconds or milliseconds.
func (w words) epoch() (time.Time, bool) {
	number := w.next()
	if number.kind != digits || w.glued() {
		return time.Time{}, false
	}
	switch len(number.text) {
	case 10:
		return time.Unix(number.value(), 0), true
	case 13:
		return time.UnixMilli(number.value()), true
	}
	return time.Time{}, false
}

// span reads a duration such as "2h 30m", "5 minutes" or "1 hour and 5 minutes".
// If bare is set, a number without a unit is in seconds.
func (w words) span(bare bool) (time.Duration, bool) {
	var sum time.Duration
	for read := false; ; read = true {
		if read {
			w.skip(",")
			w.skip("and")
		}
		amount, unit, ok := w.term(bare && !read)
		if !ok {
			return sum, read
		}
		// Two bounds, since a float64 may exceed what a Duration can hold.
		if amount*float64(unit) > float64(farthestReset) || sum > farthestReset {
			return 0, false
		}
		sum += time.Duration(amount * float64(unit))
	}
}

// term reads a number and its unit.
func (w *words) term(bare bool) (amount float64, unit time.Duration, ok bool) {
	saved := *w
	if w.skip("a") || w.skip("an") {
		amount = 1
	} else if amount, ok = w.decimal(); !ok {
		*w = saved
		return 0, 0, false
	} else if bare && !w.glued() && w.peek().kind != letters {
		return amount, time.Second, true
	}
	unit = unitOf(w.next().text)
	if unit == 0 || w.glued() && w.peek().kind != digits { // 2h30m
		*w = saved
		return 0, 0, false
	}
	return amount, unit, true
}

func unitOf(word string) time.Duration {
	switch strings.ToLower(word) {
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
