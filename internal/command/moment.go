package command

import (
	"errors"
	"time"

	"heartbeat/internal/cli"
)

// moment is a flag that takes a time, or a duration from now.
type moment struct{ time.Time }

// momentForms are the spellings of a time, local where no zone is given.
func momentForms() []string {
	return []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly,
	}
}

func (m *moment) Set(text string) error {
	var length cli.Span
	if length.Set(text) == nil {
		m.Time = time.Now().Add(time.Duration(length))
		return nil
	}
	if m.parse(text) {
		return nil
	}
	return errors.New("it takes a time or a duration from now, such as 2026-03-04T12:00, 2026-03-04T12:00:00Z, 90, 1h30m or 30d")
}

// parse takes a time.
func (m *moment) parse(text string) bool {
	for _, form := range momentForms() {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			m.Time = t
			return true
		}
	}
	return false
}

func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

func (m *moment) Type() string { return "time|duration" }

// earlier is a flag that takes a time, or how long ago that was.
type earlier struct{ moment }

func (p *earlier) Set(text string) error {
	var length cli.Span
	if length.Set(text) == nil {
		p.Time = time.Now().Add(-time.Duration(length))
		return nil
	}
	if p.parse(text) {
		return nil
	}
	return errors.New("it takes a time or how long ago that was, such as 2026-03-04, 2026-03-04T12:00, 2026-03-04T12:00:00Z, 90, 1h30m or 30d")
}
