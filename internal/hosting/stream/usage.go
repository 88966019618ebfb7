package stream

import "heartbeat/internal/flat"

// Plus is the sum of both.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output,
		CacheRead: plus(u.CacheRead, v.CacheRead), CacheWrite: plus(u.CacheWrite, v.CacheWrite),
	}
}

func plus(a, b *int64) *int64 {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	sum := *a + *b
	return &sum
}

// set takes over the counts that a usage object has.
func (u *Usage) set(object []byte) {
	flat.Each(object, func(name, value []byte) {
		n, ok := number(value)
		if !ok {
			return
		}
		switch string(name) {
		case `"input_tokens"`:
			u.Input = n
		case `"output_tokens"`:
			u.Output = n
		case `"cache_read_input_tokens"`:
			u.CacheRead = &n
		case `"cache_creation_input_tokens"`:
			u.CacheWrite = &n
		}
	})
}
