package limit

import (
	"strings"
	"time"
)

// day is a day as a text names it. A part that the text leaves out is filled in so
// that the day is the next one that fits.
type day struct {
	form    dayForm
	year    int // of onDate; 0 if the text names none
	month   time.Month
	date    int // of the month
	weekday time.Weekday
	ahead   int // of relative; 0 is today
}

type dayForm int

const (
	anyDay dayForm = iota
	onDate
	onWeekday
	relative
)

// next returns the first moment from about now on when it is such a day and the
// clock in now's location shows that time.
func (d day) next(clock time.Duration, now time.Time) (time.Time, bool) {
	for _, date := range d.dates(now) {
		for _, at := range shown(date.Add(clock), now.Location()) {
			if !at.Before(now.Add(-latestReset)) {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

// dates returns the days that may be meant, in order, each as midnight UTC.
func (d day) dates(now time.Time) []time.Time {
	year, month, date := now.Date()
	var dates []time.Time
	add := func(year int, month time.Month, date int) {
		on := time.Date(year, month, date, 0, 0, 0, 0, time.UTC)
		if d.form == onDate && on.Day() != date || d.form == onWeekday && on.Weekday() != d.weekday {
			return // no 30 February
		}
		dates = append(dates, on)
	}
	switch {
	case d.form == relative:
		add(year, month, date+d.ahead)
	case d.form == onDate && d.year > 0:
		add(d.year, d.month, d.date)
	case d.form == onDate:
		for y := year - 1; y <= year+1; y++ {
			add(y, d.month, d.date)
		}
	default:
		for i := -1; i <= 8; i++ {
			add(year, month, date+i)
		}
	}
	return dates
}

// shown returns the moments when clocks in a location show what wall shows in UTC.
// There are two if the clocks are put back over that time. If they are put forward
// over it, it is the moment at which a clock that nobody changed shows it.
func shown(wall time.Time, loc *time.Location) []time.Time {
	const day = 24 * time.Hour // more than any offset
	var at []time.Time
	var untouched time.Time
	for _, near := range []time.Time{wall.Add(day), wall.Add(-day)} {
		_, offset := near.In(loc).Zone()
		untouched = wall.Add(-time.Duration(offset) * time.Second).In(loc)
		if _, now := untouched.Zone(); now == offset {
			at = append([]time.Time{untouched}, at...)
		}
	}
	if len(at) == 0 {
		at = append(at, untouched)
	}
	return at
}

// day reads a day if one comes next.
func (w *words) day() (day, bool) {
	saved := *w
	for _, read := range []func(*words) (day, bool){(*words).dayNumeric, (*words).dayNamed, (*words).dayWord} {
		if d, ok := read(w); ok {
			return d, true
		}
		*w = saved
	}
	return day{}, false
}

// dayNumeric reads 2026-11-21.
func (w *words) dayNumeric() (day, bool) {
	year, ok := w.number(4)
	if !ok || year < 1000 || !w.skip("-") {
		return day{}, false
	}
	month, ok := w.number(2)
	if !ok || month < 1 || month > 12 || !w.skip("-") {
		return day{}, false
	}
	date, ok := w.number(2)
	return day{form: onDate, year: year, month: time.Month(month), date: date}, ok
}

// dayNamed reads "Nov 23", "November 23rd, 2026", "Sat, 21 Nov 2026".
func (w *words) dayNamed() (day, bool) {
	if _, ok := weekdayOf(w.peek().text); ok {
		w.next()
		w.skip(",")
	}
	d := day{form: onDate}
	var ok bool
	if d.month = monthOf(w.peek().text); d.month > 0 {
		w.next()
		w.skip(".")
		d.date, ok = w.ordinal()
	} else if d.date, ok = w.ordinal(); ok {
		d.month = monthOf(w.next().text)
		w.skip(".")
	}
	if !ok || d.month == 0 {
		return day{}, false
	}
	ahead := *w
	ahead.skip(",")
	if year := ahead.next(); year.kind == digits && len(year.text) == 4 && !ahead.glued() {
		d.year, *w = int(year.value()), ahead
	}
	return d, true
}

// ordinal reads 23 or 23rd, but not the 10 of 10:30.
func (w *words) ordinal() (int, bool) {
	n, ok := w.number(2)
	if !ok {
		return 0, false
	}
	for _, ending := range []string{"st", "nd", "rd", "th"} {
		if w.skip(ending) {
			break
		}
	}
	return n, !w.glued()
}

// dayWord reads "tomorrow" or "Monday".
func (w *words) dayWord() (day, bool) {
	word := w.next().text
	switch strings.ToLower(word) {
	case "today":
		return day{form: relative}, true
	case "tomorrow":
		return day{form: relative, ahead: 1}, true
	}
	weekday, ok := weekdayOf(word)
	return day{form: onWeekday, weekday: weekday}, ok
}

func monthOf(word string) time.Month {
	for m := time.January; m <= time.December; m++ {
		if name := m.String(); strings.EqualFold(word, name) || strings.EqualFold(word, name[:3]) {
			return m
		}
	}
	if strings.EqualFold(word, "sept") {
		return time.September
	}
	return 0
}

func weekdayOf(word string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := d.String(); strings.EqualFold(word, name) || strings.EqualFold(word, name[:3]) {
			return d, true
		}
	}
	return 0, false
}
