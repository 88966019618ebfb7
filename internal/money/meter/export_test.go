package meter

import "heartbeat/internal/money/price"

// ParsePrices is what a fuzzer feeds.
var ParsePrices = parsePrices

// WithSums makes the sums of a session's line right, so that a fuzzer gets behind them.
func WithSums(session, body string) []byte {
	return []byte(sumOf(session) + " " + sumOf(body) + " " + body + "\n")
}

// Before is what was spent before the first line of a user at or behind a position, and all that
// was spent where there is none.
func (s *State) Before(position int64) price.Amount {
	if m, ok := s.Mark(position); ok {
		return m.Before
	}
	return s.Spent
}
