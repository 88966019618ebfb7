package cli

import (
	"errors"
	"time"
)

// Moment is the value of a flag that takes a time, or a duration from now, or if Ago is set
// one that has passed. A time of day without a date is the next one to come, or the last
// that has passed.
type Moment struct {
	time.Time
	Ago bool
}

// momentForms are the spellings of a time, local where no zone is given.
func momentForms() []string {
	return []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly,
	}
}

// Set takes what was typed.
func (m *Moment) Set(text string) error { return m.set(text, time.Now()) }

func (m *Moment) set(text string, now time.Time) error {
	var length Span
	if length.Set(text) == nil {
		if m.Ago {
			length = -length
		}
		m.Time = now.Add(time.Duration(length)).Round(0) // the wall clock's, also after the machine slept
		return nil
	}
	for _, form := range []string{"15:04", time.TimeOnly} {
		if t, err := time.Parse(form, text); err == nil {
			m.Time = m.nearest(t, now)
			return nil
		}
	}
	for _, form := range momentForms() {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			m.Time = t
			return nil
		}
	}
	if m.Ago {
		return errors.New("it takes a time or how long ago that was, such as 2026-03-04, 2026-03-04T12:00, 2026-03-04T12:00:00Z, 07:30, 90, 1h30m or 30d")
	}
	return errors.New("it takes a time or a duration from now, such as 07:30, 2026-03-04T12:00, 2026-03-04T12:00:00Z, 90, 1h30m or 30d")
}

// nearest is when a clock on the wall shows that time of day next, or has shown it last.
func (m *Moment) nearest(clock, now time.Time) time.Time {
	on := func(days int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
	}
	switch today := on(0); {
	case m.Ago && today.After(now):
		return on(-1)
	case !m.Ago && !today.After(now):
		return on(1)
	default:
		return today
	}
}

// String is the time as RFC 3339 has it, empty for none.
func (m *Moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

// Type is what the help calls it.
func (m *Moment) Type() string { return "time|duration" }
