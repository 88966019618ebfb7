package meter

import "heartbeat/internal/price"

// WithSum makes the sum of a slot right, so that a fuzzer gets behind it.
func WithSum(file []byte) []byte {
	if len(file) < headSize {
		return file
	}
	body := file[headSize:]
	return append(appendHead(nil, head{sumOf(1, body), 1, int64(len(body))}), body...)
}

// Before is what was spent before the first line of a user at or behind a position.
// known is false as long as that may change: then spent is what is counted by now.
func (s *State) Before(position int64) (spent price.Amount, divided, known bool) {
	if m, ok := s.Mark(position); ok {
		return m.Before, m.Divided, m.Known
	}
	return s.Spent, s.Divided, false
}
