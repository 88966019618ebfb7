package meter

import "heartbeat/internal/price"

// ParsePrices is what a fuzzer feeds.
var ParsePrices = parsePrices

// WithSum makes the sum of a slot right, so that a fuzzer gets behind it.
func WithSum(file []byte) []byte {
	if len(file) < headSize {
		return file
	}
	body := file[headSize:]
	return append(appendHead(nil, head{sumOf(1, body), 1, int64(len(body))}), body...)
}

// Before is what was spent before the first line of a user at or behind a position, and all that
// was spent where there is none.
func (s *State) Before(position int64) price.Amount {
	if m, ok := s.Mark(position); ok {
		return m.Before
	}
	return s.Spent
}
