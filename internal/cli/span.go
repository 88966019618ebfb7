package cli

import (
	"errors"
	"time"

	"heartbeat/internal/words"
)

// Span is the value of a flag that takes a length of time: seconds (300, 0.5),
// a Go duration (5m), or one with days (30d, 1d12h).
type Span time.Duration

// Set takes what was typed.
func (s *Span) Set(text string) error {
	d, err := words.ParseSpan(text)
	if err != nil || d < 0 {
		return errors.New("it takes seconds or a duration, such as 300, 0.5, 5m or 30d")
	}
	*s = Span(d)
	return nil
}

// String is the span as a Go duration, which every release of heartbeat reads:
// install writes it into settings files.
func (s *Span) String() string { return time.Duration(*s).String() }

// Type is what the help calls it.
func (s *Span) Type() string { return "duration" }
