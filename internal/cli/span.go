package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Span is the value of a flag that takes a length of time: seconds (300, 0.5),
// a Go duration (5m), or one with days (30d, 1d12h).
type Span time.Duration

const day = 24 * time.Hour

// maxDays is the most whole days that a duration can hold.
const maxDays = float64(math.MaxInt64 / day)

// Set takes what was typed.
func (s *Span) Set(text string) error {
	d, err := parseSpan(text)
	if err != nil || d < 0 {
		return errors.New("it takes seconds or a duration, such as 300, 0.5, 5m or 30d")
	}
	*s = Span(d)
	return nil
}

func parseSpan(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(seconds) < math.MaxInt64/1e9 {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	count, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseFloat(count, 64)
	if err != nil || !(days >= 0 && days <= maxDays) { // NaN is neither
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

// String is the span as a Go duration, which every release of heartbeat reads:
// install writes it into settings files.
func (s *Span) String() string { return time.Duration(*s).String() }

// Type is what the help calls it.
func (s *Span) Type() string { return "duration" }
