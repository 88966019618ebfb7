package limit

import (
	"strings"
	"time"
)

// wall reads a date, a time of day or both, with their zone: "3:30pm
// (America/Los_Angeles)", "Nov 23, 5pm", "2026-11-21 18:00 UTC", "midnight UTC",
// "Sat, 21 Nov 2026 18:00:00 GMT".
func (w words) wall(now time.Time) (time.Time, bool) {
	d, dated := w.day()
	if dated && !w.skip(",") && !w.skip("at") {
		w.skip("T") // of RFC 3339
	}
	utc := w.skipUTC() // "UTC midnight"
	clock, timed := w.clock()
	if !dated && !timed {
		return time.Time{}, false
	}
	loc, ok := time.UTC, true
	if !utc {
		loc, ok = w.zone(now.Location(), timed && d.year > 0)
	}
	if !ok {
		return time.Time{}, false
	}
	if !dated && !w.skip(",") {
		w.skip("on")
	}
	if !dated { // "18:00 UTC on Nov 21", "6am tomorrow"
		d, _ = w.day()
	}
	return d.next(clock, now.In(loc))
}

// clock reads a time of day as the time since midnight: "3pm", "3:30 p.m.",
// "15:30:00.5", "noon". A number alone is not one.
func (w *words) clock() (time.Duration, bool) {
	saved := *w
	clock, ok := w.clockWord()
	if !ok {
		*w = saved
		if clock, ok = w.clockNumbers(); !ok {
			*w = saved
		}
	}
	return clock, ok
}

func (w *words) clockWord() (time.Duration, bool) {
	switch strings.ToLower(w.next().text) {
	case "midnight":
		return 0, true
	case "noon":
		return 12 * time.Hour, true
	}
	return 0, false
}

func (w *words) clockNumbers() (time.Duration, bool) {
	hour, ok := w.number(2)
	if !ok {
		return 0, false
	}
	minute, exact := w.sixtieth()
	second := 0
	if exact {
		second, _ = w.sixtieth()
		if strings.HasPrefix(w.text[w.pos:], ".") {
			w.fraction()
		}
	}
	switch half := w.half(); {
	case half == 0 && !exact || half == 0 && hour > 23 || half != 0 && (hour < 1 || hour > 12):
		return 0, false
	case half != 0:
		hour %= 12
		if half == 'p' {
			hour += 12
		}
	}
	if strings.HasPrefix(w.text[w.pos:], ":") {
		return 0, false // not a time of day
	}
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second, true
}

// sixtieth reads the minutes or the seconds of a clock.
func (w *words) sixtieth() (int, bool) {
	ahead := *w
	if !ahead.skip(":") {
		return 0, false
	}
	p := ahead.next()
	if p.kind != digits || len(p.text) != 2 || p.value() > 59 {
		return 0, false
	}
	*w = ahead
	return int(p.value()), true
}

// fraction skips the fraction of a second.
func (w *words) fraction() {
	ahead := *w
	if ahead.skip(".") && ahead.next().kind == digits {
		*w = ahead
	}
}

// half reads am or pm and returns its first letter, or 0.
func (w *words) half() byte {
	for _, half := range []byte{'a', 'p'} {
		ahead := *w
		if ahead.skip(string(half)+"m") && !ahead.glued() {
			*w = ahead
			return half
		}
		ahead = *w
		if ahead.skip(string(half)) && ahead.skip(".") && ahead.skip("m") {
			ahead.skip(".")
			*w = ahead
			return half
		}
	}
	return 0
}
