package limit

import (
	"strings"
	"time"
)

// What End believes: the longest limit of the client's is a weekly one,
// and a message arrives a little later than it was written.
const (
	farthestReset = 8 * 24 * time.Hour
	latestReset   = time.Minute
)

// maxResetText is how much of a message is read; the client's own are short.
const maxResetText = 4 << 10

// End is when the limit ends that the message of a rate limit tells of, in
// now's location: at most a minute ago, and at most eight days ahead. Any other
// time is not believed, nor is one in a zone that this machine does not know.
// The client leaves out the seconds, so the limit may end up to a minute later.
//
// In 2.1.329 the message reads "You've hit your weekly limit · resets Nov 23,
// 5pm (Europe/Berlin)", without the day where it is less than 24 hours off, and
// with the year where it is another one. Other forms are the API's, those of
// gateways, which the client quotes, and of earlier releases.
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
	seconds bool  // the span may be a bare number
	rest    words // what follows
}

// cue reads one that begins with the next word; without, it is zero. A number
// behind the first word alone may be anything ("reset 3 times"), so the weaker
// words need a preposition.
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

// epoch reads a Unix time, in seconds or in milliseconds.
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

// span reads a duration, such as "2h 30m", "5 minutes" or "1 hour and 5
// minutes", or a number of seconds where a bare one counts as such.
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
		// Two bounds, as a float64 may be beyond what a Duration can hold.
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
