// Package screen reads the terminal of a session. A [Screen] takes the bytes that a client prints.
// A [Sight] is the meaning of its text, recognised by the screen package of each client. A launcher
// with nobody at the terminal can then say why a session does not begin.
//
// Nothing here answers a dialog: dialogs ask a person for consent.
package screen

import (
	"strings"
	"sync"

	"github.com/hinshun/vt10x"
)

// Screen is a terminal without a window: it takes a program's output and returns the text on the
// screen. Its methods may be called from any goroutine.
type Screen struct {
	mu     sync.Mutex
	term   vt10x.Terminal
	stream stream
	broken bool
}

// New returns an empty screen. A size below 1 counts as 1.
func New(rows, cols int) *Screen {
	s := &Screen{term: vt10x.New(vt10x.WithSize(max(1, cols), max(1, rows)))}
	s.stream.term = s.term
	return s
}

// Write draws program output. A sequence or a character may be split between two calls. Write
// always takes all of p and returns no error. After a panic of the emulator the screen no longer
// changes.
func (s *Screen) Write(p []byte) (int, error) {
	s.guarded(func() { s.stream.write(p) })
	return len(p), nil
}

// Resize changes the screen's size. A size below 1 changes nothing.
func (s *Screen) Resize(rows, cols int) {
	s.guarded(func() { s.term.Resize(cols, rows) })
}

// guarded keeps a panic in the emulator from ending this program: the emulator's input comes from
// other programs.
func (s *Screen) guarded(draw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return
	}
	defer func() { s.broken = recover() != nil }()
	draw()
}

// Glyph returns what is drawn at a position: a blank for an empty cell, and 0 for the second half
// of a wide character. A visible cursor swaps the colours.
func (s *Screen) Glyph(x, y int) vt10x.Glyph {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.term.Cell(x, y)
	switch g.Char {
	case 0, '\u00a0':
		g.Char = ' '
	case rest:
		g.Char = 0
	}
	if at := s.term.Cursor(); s.term.CursorVisible() && at.X == x && at.Y == y {
		g.FG, g.BG = g.BG, g.FG
	}
	return g
}

// Text returns the rows of the screen, separated by newlines, without trailing blanks and without
// empty rows at the end.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	cols, rows := s.term.Size()
	var text strings.Builder
	for y, empty := 0, 0; y < rows; y++ {
		row := s.row(y, cols)
		if row == "" {
			empty++
			continue
		}
		if text.Len() > 0 {
			empty++
		}
		text.WriteString(strings.Repeat("\n", empty))
		text.WriteString(row)
		empty = 0
	}
	return text.String()
}

func (s *Screen) row(y, cols int) string {
	var row strings.Builder
	for x := range cols {
		switch c := s.term.Cell(x, y).Char; c {
		case rest: // the second half of the character before it
		case 0:
			row.WriteByte(' ')
		default:
			row.WriteRune(c)
		}
	}
	return strings.TrimRight(row.String(), " \u00a0")
}

// LastLine returns the last line of a screen's text, ignoring trailing blanks and empty lines.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
