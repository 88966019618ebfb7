package words

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxDays is the most whole days that a duration can hold.
const maxDays = float64(math.MaxInt64 / day)

// ParseSpan reads a length of time as a person types it: seconds (300, 0.5), a Go
// duration (5m), or one with days (30d, 1d12h). It may be negative.
func ParseSpan(text string) (time.Duration, error) {
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
