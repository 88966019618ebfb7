package screen

import (
	"strconv"
	"strings"

	"github.com/hinshun/vt10x"
)

// Picture is what a screen shows at one moment.
type Picture struct {
	Rows   [][]Cell // all of the same length
	X, Y   int      // where the cursor is
	Cursor bool     // it is visible
	// CursorKeys says that the program wants the cursor keys as an application does, and
	// Paste that it wants to be told what is pasted.
	CursorKeys, Paste bool
}

// Cell is one place of a picture. Its character is printable, and 0 in the second half of
// a wide one.
type Cell struct {
	Char rune
	Look Look
}

// Look is the colours and the style of a cell.
type Look struct {
	fg, bg vt10x.Color
	mode   int16
}

// Plain is the look of a cell that nothing was drawn in.
var Plain = Look{fg: vt10x.DefaultFG, bg: vt10x.DefaultBG}

// Reversed is the look of a line of ours within a picture.
var Reversed = Look{fg: vt10x.DefaultBG, bg: vt10x.DefaultFG, mode: reverse}

// Picture is what the screen shows now.
func (s *Screen) Picture() (p Picture) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cols, rows := s.term.Size()
	cells := make([]Cell, rows*cols)
	for y := range rows {
		row := cells[y*cols : (y+1)*cols : (y+1)*cols]
		for x := range row {
			g := s.term.Cell(x, y)
			row[x] = Cell{shown(g.Char), Look{g.FG, g.BG, g.Mode & styles}}
		}
		halves(row)
		p.Rows = append(p.Rows, row)
	}
	at, mode := s.term.Cursor(), s.term.Mode()
	p.X, p.Y, p.Cursor = at.X, at.Y, s.term.CursorVisible()
	p.CursorKeys, p.Paste = mode&vt10x.ModeAppCursor != 0, s.stream.paste
	return p
}

// shown is the character of a cell: a blank where that is nothing, 0 for the second half of
// a wide one.
func shown(c rune) rune {
	switch {
	case c == rest:
		return 0
	case c < ' ', c >= 0x7f && c <= 0xa0: // a blank that may not break looks like one
		return ' '
	}
	return c
}

// halves makes blanks of halves of wide characters: what was drawn since may have parted them.
func halves(row []Cell) {
	for x := range row {
		whole := x+1 < len(row) && row[x+1].Char == 0
		switch c := row[x].Char; {
		case c == 0 && (x == 0 || !wide(row[x-1].Char)), c != 0 && wide(c) && !whole:
			row[x].Char = ' '
		}
	}
}

// The bits of a glyph's mode. The emulator, which does not export them, draws what is bold
// in a bright colour, and what is reversed with its colours swapped.
const (
	reverse   = 1 << 0
	underline = 1 << 1
	bold      = 1 << 2
	italic    = 1 << 4
	blink     = 1 << 5

	styles = reverse | underline | bold | italic | blink
)

// Sequence is what sets a terminal to the look, whatever it was set to.
func (l Look) Sequence() string {
	codes := []string{"0"}
	for _, style := range []struct {
		bit  int16
		code string
	}{{bold, "1"}, {italic, "3"}, {underline, "4"}, {blink, "5"}, {reverse, "7"}} {
		if l.mode&style.bit != 0 {
			codes = append(codes, style.code)
		}
	}
	fg, bg := l.fg, l.bg
	if l.mode&reverse != 0 {
		fg, bg = bg, fg
	}
	codes = append(codes, colour(fg, 30, "38")...)
	codes = append(codes, colour(bg, 40, "48")...)
	return "\x1b[" + strings.Join(codes, ";") + "m"
}

// colour is the codes of a colour, none for the terminal's own.
func colour(c vt10x.Color, first int, other string) []string {
	number := func(n vt10x.Color) string { return strconv.Itoa(int(n)) }
	switch {
	case c < 8:
		return []string{strconv.Itoa(first + int(c))}
	case c < 16:
		return []string{strconv.Itoa(first + 60 + int(c) - 8)}
	case c < 256:
		return []string{other, "5", number(c)}
	case c < 1<<24:
		return []string{other, "2", number(c >> 16), number(c >> 8 & 255), number(c & 255)}
	}
	return nil
}
