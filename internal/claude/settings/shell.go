package settings

import "strings"

// shellWords splits a shell line into words, well enough to find a program and its flags: it removes quotes and
// backslashes, ends words at operators, and leaves variables as they are.
func shellWords(line string) []string {
	var s splitter
	for i := 0; i < len(line); i++ {
		i += s.take(line[i], line[i+1:])
	}
	s.flush()
	return s.words
}

// splitter is the state of shellWords between two bytes.
type splitter struct {
	words []string
	word  strings.Builder
	open  bool // a word has begun, perhaps an empty quoted one
	quote byte // the quote that is open, or 0
}

// take reads one byte and returns how many bytes of the rest it consumed as well.
func (s *splitter) take(c byte, rest string) int {
	switch {
	case c == s.quote && c != 0:
		s.quote = 0
	case s.quote == '\'':
		s.word.WriteByte(c)
	case c == '\\' && rest != "":
		s.add(rest[0])
		return 1
	case s.quote != 0:
		s.word.WriteByte(c)
	case c == '\'' || c == '"':
		s.quote, s.open = c, true
	case strings.IndexByte(" \t\r\n;&|()<>", c) >= 0:
		s.flush()
	default:
		s.add(c)
	}
	return 0
}

func (s *splitter) add(c byte) {
	s.open = true
	s.word.WriteByte(c)
}

func (s *splitter) flush() {
	if s.open {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.open = false
}
