package stream

import (
	"regexp"
	"time"

	"heartbeat/internal/claude/limit"
)

// RateLimit is what the first message said that names one.
type RateLimit struct {
	Detail   string    // the message's error, at most 200 characters of it
	ResetsAt time.Time // zero if no message said
}

// limited is what an error must contain. Only errors at the top level of a message
// are looked at: a tool's result or the model itself may well speak of rate limits.
var limited = regexp.MustCompile(`(?i)rate[-_ ]?limit|429|usage limit|quota exceeded|too many requests`)

const maxDetail = 200

func (t *Tally) limit(detail string, message []byte, now time.Time) {
	if detail == "" || !limited.MatchString(detail) {
		return
	}
	if t.RateLimit == nil {
		t.RateLimit = &RateLimit{Detail: first(detail, maxDetail)}
	}
	if !t.RateLimit.ResetsAt.IsZero() {
		return
	}
	for _, said := range []string{detail, texts(member(message, "content"))} {
		if at, ok := limit.End(said, now); ok {
			t.RateLimit.ResetsAt = at
			return
		}
	}
}

// first is the first n characters of s.
func first(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
