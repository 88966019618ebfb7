package flat

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"
)

// Each calls f for every member of an object that is known to be valid JSON, with
// the name and the value as they are spelled. It allocates nothing, whatever the
// size of the object.
func Each(object []byte, f func(name, value []byte)) {
	for i := bytes.IndexByte(object, '{') + 1; ; {
		i = skip(object, i, " \t\r\n,")
		if i >= len(object) || object[i] != '"' {
			return
		}
		nameEnd := valueEnd(object, i)
		start := skip(object, nameEnd, " \t\r\n:")
		end := valueEnd(object, start)
		f(object[i:nameEnd], object[start:end])
		i = end
	}
}

func skip(b []byte, i int, chars string) int {
	for i < len(b) && bytes.IndexByte([]byte(chars), b[i]) >= 0 {
		i++
	}
	return i
}

// valueEnd returns the offset after the value that starts at i.
func valueEnd(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(b))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				if depth < 0 {
					return i
				}
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

// textPart is how many bytes of a string are decoded at once.
const textPart = 64 << 10

// WriteText writes the text of a valid JSON string, part by part. Invalid UTF-8
// becomes U+FFFD.
func WriteText(w io.Writer, quoted []byte) error {
	rest := quoted[1 : len(quoted)-1]
	part := make([]byte, 0, textPart+64)
	for len(rest) > 0 {
		n := partEnd(rest)
		part = append(append(append(part[:0], '"'), rest[:n]...), '"')
		var text string
		if err := json.Unmarshal(part, &text); err != nil {
			return err
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// partEnd returns where a string may be cut: not inside an escape, a surrogate pair
// or a rune.
func partEnd(s []byte) int {
	i := 0
	for i < len(s) && i < textPart {
		switch {
		case s[i] != '\\':
			i++
		case s[i+1] != 'u':
			i += 2
		case len(s) >= i+12 && (s[i+2]|0x20) == 'd' && s[i+6] == '\\' && s[i+7] == 'u':
			i += 12
		default:
			i += 6
		}
	}
	for i < len(s) && !utf8.RuneStart(s[i]) && i < textPart+utf8.UTFMax {
		i++
	}
	return min(i, len(s))
}
