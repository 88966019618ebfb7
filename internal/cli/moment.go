package cli

import (
	"errors"
	"time"

	"heartbeat/internal/words"
)

// Moment is the value of a flag that takes a time, or a duration from now (before now if Ago is
// set). A time of day without a date is the next such time, or the last one if Ago is set.
type Moment struct {
	time.Time
	Ago bool
}

// Set takes what was typed.
func (m *Moment) Set(text string) error { return m.set(text, time.Now()) }

func (m *Moment) set(text string, now time.Time) error {
	var length Span
	if length.Set(text) == nil {
		if m.Ago {
			length = -length
		}
		m.Time = now.Add(time.Duration(length)).Round(0) // the monotonic clock does not count sleep
		return nil
	}
	if t, err := time.ParseInLocation(time.RFC3339, text, now.Location()); err == nil {
		m.Time = t
		return nil
	}
	for _, form := range []string{"15:04", time.TimeOnly, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			m.Time = m.nearest(t, now)
			return nil
		}
	}
	if m.Ago {
		return errors.New("it takes a time or how long ago that was, such as 2026-03-04, 2026-03-04T12:00, 2026-03-04T12:00:00Z, 07:30, 90, 1h30m or 30d")
	}
	return errors.New("it takes a time or a duration from now, such as 07:30, 2026-03-04T12:00, 2026-03-04T12:00:00Z, 90, 1h30m or 30d")
}

// nearest returns when clocks show wall next, or, if m.Ago is set, when they last did. Without a date it is that of any
// day; with one the day stays, though it may be over, or yet to come.
func (m *Moment) nearest(wall, now time.Time) (last time.Time) {
	moments := words.Showing(wall, now.Location())
	if wall.Year() == 0 {
		moments = nil
		for n := -1; n <= 1; n++ {
			on := time.Date(now.Year(), now.Month(), now.Day()+n, wall.Hour(), wall.Minute(), wall.Second(), 0, time.UTC)
			moments = append(moments, words.Showing(on, now.Location())...)
		}
	}
	for _, at := range moments {
		if at.After(now) && (!m.Ago || last.IsZero()) {
			return at
		}
		if !at.After(now) {
			last = at
		}
	}
	return last
}

// String returns the time in RFC 3339, empty for none.
func (m *Moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

// Type is the value's name in the help.
func (m *Moment) Type() string { return "time|duration" }
