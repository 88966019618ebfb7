package screen

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hinshun/vt10x"
	"golang.org/x/text/width"
)

// rest fills the second cell of a wide character. It is not a character, so no program prints it.
const rest = '\uFFFF'

// stream passes a program's output on to the emulator without what the emulator misreads: private sequences (it takes
// the kitty keyboard's for a cursor position), titles, and numbers so large that they would keep it busy for ever. It
// also gives wide characters their second cell, which the emulator does not.
type stream struct {
	term  vt10x.Terminal
	state func(*stream, rune)
	part  []byte // the first bytes of a character
	seq   strings.Builder
	out   []byte // not yet passed to the emulator
	paste bool   // the program asked for bracketed paste, which the emulator does not track
}

// maxSequence is longer than any sequence that draws something.
const maxSequence = 64

func (s *stream) write(p []byte) {
	p = append(s.part, p...)
	for len(p) > 0 && utf8.FullRune(p) {
		r, size := utf8.DecodeRune(p)
		if s.state == nil {
			s.state = (*stream).text
		}
		s.state(s, r)
		p = p[size:]
	}
	s.part = append([]byte(nil), p...)
	s.flush()
}

func (s *stream) flush() {
	_, _ = s.term.Write(s.out) // fails only for parts of characters
	s.out = s.out[:0]
}

func (s *stream) text(r rune) {
	switch {
	case r == '\x1b':
		s.state = (*stream).escape
	case r < unicode.MaxASCII:
		s.out = append(s.out, byte(r))
	case r == rest, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Mn, unicode.Me):
		// These take no cell.
	case wide(r): // it must not be split between two rows
		s.flush()
		cols, _ := s.term.Size()
		if cols < 2 {
			return
		}
		if at := s.term.Cursor(); at.X == cols-1 && at.State&wrapNext == 0 {
			s.out = append(s.out, ' ')
		}
		s.out = utf8.AppendRune(s.out, r)
		s.out = utf8.AppendRune(s.out, rest)
	default:
		s.out = utf8.AppendRune(s.out, r)
	}
}

func wide(r rune) bool {
	kind := width.LookupRune(r).Kind()
	return kind == width.EastAsianWide || kind == width.EastAsianFullwidth
}

// wrapNext is the emulator's bit for a cursor after the last column.
const wrapNext = 1 << 1

// escape reads the character after an ESC.
func (s *stream) escape(r rune) {
	s.state = (*stream).text
	switch r {
	case '[':
		s.seq.Reset()
		s.state = (*stream).control
	case ']', 'P', '_', '^', 'X', 'k':
		s.state = (*stream).hidden
	case '(', ')', '*', '+', '#', ' ', '%':
		s.state = (*stream).charset
	case '\x1b':
		s.state = (*stream).escape
	case 'c': // a reset, which does not clear the emulator's whole screen
		s.out = append(s.out, "\x1bc\x1b[2J"...)
		s.paste = false
	case 'D', 'E', 'M', '7', '8':
		s.out = append(s.out, '\x1b', byte(r))
	}
}

// charset skips the choice of a character set: programs print UTF-8.
func (s *stream) charset(rune) { s.state = (*stream).text }

// hidden skips a string that draws nothing, such as a title.
func (s *stream) hidden(r rune) {
	switch r {
	case '\a', '\x18', '\x1a':
		s.state = (*stream).text
	case '\x1b':
		s.state = (*stream).escape // the string's end, or another sequence
	}
}

func (s *stream) control(r rune) {
	switch {
	case r == '\x1b':
		s.state = (*stream).escape
	case r < ' ', r > '~':
		s.state = (*stream).text
	case r < '@':
		s.seq.WriteRune(r)
	default:
		s.state = (*stream).text
		s.draw(s.seq.String(), byte(r))
	}
}

// draw passes a control sequence on if it changes the screen.
func (s *stream) draw(args string, final byte) {
	private := strings.HasPrefix(args, "?")
	switch {
	case len(args) > maxSequence, strings.Trim(args, "?0123456789;") != "":
		return // this includes all other private sequences
	case private && final != 'h' && final != 'l':
		return
	case strings.IndexByte("ABCDEFGHIJKLMPSTXZ`@adefghlmrsu", final) < 0:
		return
	}
	if private && slices.Contains(strings.Split(args[1:], ";"), "2004") {
		s.paste = final == 'h'
	}
	s.out = append(s.out, "\x1b["...)
	s.out = append(s.out, short(args, final)...)
	s.out = append(s.out, final)
}

// short returns the arguments with numbers of at most four digits. It fills in missing arguments,
// because the emulator stops at the first missing one.
func short(args string, final byte) string {
	least := "1"
	if strings.IndexByte("JKghlm", final) >= 0 {
		least = "0"
	}
	fields := strings.Split(args, ";")
	for i, field := range fields {
		switch {
		case strings.Trim(field, "0") == "":
			fields[i] = least
		case len(field) > 4 && field[0] != '?':
			fields[i] = "9999"
		}
	}
	return strings.Join(fields, ";")
}
