package screen

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
	"github.com/hinshun/vt10x"
	"golang.org/x/text/width"
)

// rest fills the second cell of a wide character. It is not a character, so no program prints it.
const rest = '\uFFFF'

// stream passes a program's output to the emulator, except what the emulator misreads: private sequences (one of the
// kitty keyboard looks like a cursor position to it), titles, and numbers so large that they would keep it busy for
// ever. stream also gives wide characters their second cell, which the emulator does not.
type stream struct {
	term   vt10x.Terminal
	parser *ansi.Parser // of sequences
	digits int          // the number of digits that came last, in a row
	part   []byte       // the first bytes of a character
	out    []byte       // not yet passed to the emulator
	paste  bool         // the program asked for bracketed paste, which the emulator does not track
}

func (s *stream) write(p []byte) {
	if s.parser == nil {
		s.parser = new(ansi.Parser)
		s.parser.SetParamsSize(parser.MaxParamsSize)
		s.parser.SetDataSize(1) // no string is read
		s.parser.SetHandler(ansi.Handler{HandleEsc: s.escape, HandleCsi: s.draw})
	}
	p = append(s.part, p...)
	for len(p) > 0 && utf8.FullRune(p) {
		r, size := utf8.DecodeRune(p)
		p = p[size:]
		if s.digits++; r < '0' || r > '9' {
			s.digits = 0
		}
		switch is := s.parser.State(); {
		case r == ansi.ESC: // this also ends an unfinished sequence
			s.parser.Reset()
			s.parser.Advance(ansi.ESC)
		case is == parser.GroundState,
			r < ' ' && r != ansi.CAN && r != ansi.SUB && (is == parser.EscapeState || is >= parser.CsiEntryState && is <= parser.CsiParamState):
			s.text(r) // a terminal obeys a control character even within a sequence
		case is == parser.EscapeState && strings.ContainsRune("P_^Xk", r): // a string that draws nothing ends as a title does
			s.parser.Advance(']')
		case is == parser.CsiIntermediateState && r >= '0' && r <= '?', s.digits > 9:
			// The library would forget what it has read of the sequence.
		default:
			s.parser.Advance(byte(min(r, '~')))
		}
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

// escape passes a short sequence on, except the choice of a character set: programs print UTF-8.
func (s *stream) escape(c ansi.Cmd) {
	switch final := c.Final(); {
	case c.Intermediate() != 0:
	case final == 'c': // a reset, which does not clear the emulator's whole screen
		s.out = append(s.out, "\x1bc\x1b[2J"...)
		s.paste = false
	case strings.IndexByte("DEM78", final) >= 0:
		s.out = append(s.out, ansi.ESC, final)
	}
}

// draw passes a control sequence on if it changes the screen, with numbers of at most four digits. It fills in missing
// arguments, because the emulator stops at the first missing one.
func (s *stream) draw(c ansi.Cmd, args ansi.Params) {
	final, private := c.Final(), c.Prefix() == '?'
	switch {
	case c.Prefix() != 0 && !private, private && final != 'h' && final != 'l', c.Intermediate() != 0:
		return
	case strings.IndexByte("ABCDEFGHIJKLMPSTXZ`@adefghlmrsu", final) < 0, slices.ContainsFunc(args, ansi.Param.HasMore):
		return
	}
	least := 1
	if strings.IndexByte("JKghlm", final) >= 0 {
		least = 0
	}
	s.out = append(s.out, "\x1b["...)
	if private {
		s.out = append(s.out, '?')
	}
	for i := range max(1, len(args)) {
		n, _, _ := args.Param(i, least)
		if i > 0 {
			s.out = append(s.out, ';')
		}
		s.out = strconv.AppendInt(s.out, int64(min(max(n, least), 9999)), 10)
		if private && n == 2004 {
			s.paste = final == 'h'
		}
	}
	s.out = append(s.out, final)
}
