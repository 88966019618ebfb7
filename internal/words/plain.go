package words

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxMarks is how many combining marks may follow each other. No language needs more, and a longer
// run paints over the lines above and below.
const maxMarks = 8

// Plain returns s in a form that is safe to show on a terminal. Newlines and tabs stay. Every other
// rune that a terminal acts on, or that changes the direction of the text, becomes its JSON escape
// (\u001b), so that JSON stays JSON.
func Plain(s string) string {
	var c cleaner
	return string(c.clean(nil, []byte(s)))
}

// Line is [Plain] with blanks in place of line breaks, so that foreign text cannot pose as a line of ours.
func Line(s string) string {
	return Plain(strings.Join(strings.FieldsFunc(s, breaksLine), " "))
}

func breaksLine(r rune) bool {
	return r >= '\t' && r <= '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// Sentence is [Line] for joined errors.
func Sentence(s string) string {
	return Line(strings.ReplaceAll(s, "\n", "; "))
}

// Screen writes to a terminal, after [Plain].
type Screen struct {
	terminal *os.File
	cleaner
	rest []byte // the first bytes of a rune that the next write completes
}

// OnScreen returns a [Screen] around w if w is a terminal, and w itself otherwise.
func OnScreen(w io.Writer, isTerminal func(*os.File) bool) io.Writer {
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		return &Screen{terminal: f}
	}
	return w
}

func (s *Screen) Write(b []byte) (int, error) {
	all := append(s.rest, b...)
	whole := WholeRunes(all)
	_, err := s.terminal.Write(s.clean(nil, all[:whole]))
	s.rest = append([]byte(nil), all[whole:]...)
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// Control writes a control sequence unchanged.
func (s *Screen) Control(sequence string) error {
	_, err := s.terminal.WriteString(sequence)
	return err
}

// Raw returns the terminal behind a [Screen] or behind a writer with a Raw method, and w otherwise.
// It is for text that must not be changed.
func Raw(w io.Writer) io.Writer {
	if s, ok := w.(interface{ Raw() io.Writer }); ok {
		return s.Raw()
	}
	return w
}

// Raw returns the terminal itself.
func (s *Screen) Raw() io.Writer { return s.terminal }

// WholeRunes returns the length of b without an incomplete rune at its end.
func WholeRunes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return at
			}
			break
		}
	}
	return len(b)
}

// cleaner counts the combining marks in a row, across writes.
type cleaner struct{ marks int }

func (c *cleaner) clean(to, b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r < utf8.RuneSelf && r >= ' ' && r != 0x7f, r == '\n', r == '\t':
			c.marks, to = 0, append(to, byte(r))
		case unicode.In(r, unicode.Mn, unicode.Me):
			if c.marks++; c.marks <= maxMarks {
				to = append(to, b[:n]...)
			}
		case isCommand(r):
			if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
				to = fmt.Appendf(to, `\u%04x\u%04x`, high, low)
			} else {
				to = fmt.Appendf(to, `\u%04x`, r)
			}
		default: // an invalid byte becomes U+FFFD
			c.marks, to = 0, utf8.AppendRune(to, r)
		}
		b = b[n:]
	}
	return to
}

// isCommand reports whether a terminal acts on r without showing it. The two joiners do not count:
// several scripts and emoji need them.
func isCommand(r rune) bool {
	if r == '\u200c' || r == '\u200d' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
