package stream

import "iter"

// elements are the elements of a valid, compact JSON array, as they are spelled; none
// if it is no array. Nothing is copied: one may be of many megabytes.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(array) < 3 || array[0] != '[' {
			return
		}
		start, depth, quoted := 1, 0, false
		for i := 1; i < len(array); i++ {
			switch c := array[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '[', c == '{':
				depth++
			case depth == 0 && (c == ',' || c == ']'):
				if !yield(array[start:i]) {
					return
				}
				start = i + 1
			case c == ']', c == '}':
				depth--
			}
		}
	}
}
