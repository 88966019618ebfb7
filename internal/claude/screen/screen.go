package screen

import (
	"strings"
	"sync"

	"github.com/hinshun/vt10x"
)

// Screen is a terminal without a window: it takes what a program prints, and says
// what stands there. Its methods may be called from any goroutine.
type Screen struct {
	mu     sync.Mutex
	term   vt10x.Terminal
	stream stream
	broken bool
}

// New is an empty screen. Sizes below one row or column count as one.
func New(rows, cols int) *Screen {
	s := &Screen{term: vt10x.New(vt10x.WithSize(max(1, cols), max(1, rows)))}
	s.stream.term = s.term
	return s
}

// Write draws what a program printed. A sequence or a character may be split
// between two calls. It always takes all of p, and its error is nil. Bytes that
// the emulator breaks at leave the screen as it was from then on.
func (s *Screen) Write(p []byte) (int, error) {
	s.guarded(func() { s.stream.write(p) })
	return len(p), nil
}

// Resize gives the screen another size. Below one row or column it does nothing.
func (s *Screen) Resize(rows, cols int) {
	s.guarded(func() { s.term.Resize(cols, rows) })
}

// guarded keeps a panic in the emulator, whose input comes from any program, from
// ending this one.
func (s *Screen) guarded(draw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return
	}
	defer func() { s.broken = recover() != nil }()
	draw()
}

// Text is what stands on the screen: its rows, each ended by a newline but the
// last, without blanks at their ends and without empty rows at the end.
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
		case rest: // the character before it takes its place
		case 0:
			row.WriteByte(' ')
		default:
			row.WriteRune(c)
		}
	}
	return strings.TrimRight(row.String(), " \u00a0")
}
