package screen

import "github.com/hinshun/vt10x"

// Cell is one position on a screen. Colours are the emulator's: up to 255 an index
// into the xterm palette, above that red, green and blue in a byte each, or
// [vt10x.DefaultFG] and [vt10x.DefaultBG]. Reverse video is already applied.
type Cell struct {
	Char      rune // a blank if empty, 0 for the second half of a wide character
	FG, BG    vt10x.Color
	Bold      bool
	Italic    bool
	Underline bool
}

// The emulator's attribute bits, which it does not export.
const (
	underline = 1 << 1
	bold      = 1 << 2
	italic    = 1 << 4
)

// Cells returns the screen row by row, all rows of the same length. The cell under
// a visible cursor has its colours swapped.
func (s *Screen) Cells() [][]Cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	cols, rows := s.term.Size()
	all := make([][]Cell, rows)
	for y := range all {
		all[y] = make([]Cell, cols)
		for x := range all[y] {
			all[y][x] = cell(s.term.Cell(x, y))
		}
	}
	if at := s.term.Cursor(); s.term.CursorVisible() && at.Y < rows && at.X < cols {
		under := &all[at.Y][at.X]
		under.FG, under.BG = under.BG, under.FG
	}
	return all
}

func cell(g vt10x.Glyph) Cell {
	c := Cell{
		Char: g.Char, FG: g.FG, BG: g.BG,
		Bold: g.Mode&bold != 0, Italic: g.Mode&italic != 0, Underline: g.Mode&underline != 0,
	}
	switch g.Char {
	case 0, '\u00a0':
		c.Char = ' '
	case rest:
		c.Char = 0
	}
	return c
}
