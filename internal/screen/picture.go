package screen

import (
	"github.com/charmbracelet/x/ansi"
	"github.com/hinshun/vt10x"
)

// Picture is what a screen shows at one moment.
type Picture struct {
	Rows   [][]Cell // all of the same length
	X, Y   int      // the cursor's position
	Cursor bool     // whether the cursor is visible
	// CursorKeys and Paste report that the program asked for application cursor keys, and for bracketed paste.
	CursorKeys, Paste bool
}

// Cell is one position of a picture. Its character is printable, or 0 in the second half of a wide character.
type Cell struct {
	Char rune
	Look Look
}

// Look holds the colours and the style of a cell.
type Look struct {
	FG, BG vt10x.Color
	Mode   int16
}

// Plain is the look of an empty cell.
var Plain = Look{FG: vt10x.DefaultFG, BG: vt10x.DefaultBG}

// Reversed is the look of heartbeat's own line within a picture.
var Reversed = Look{FG: vt10x.DefaultBG, BG: vt10x.DefaultFG, Mode: reverse}

// Picture returns what the screen shows now.
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

// shown returns the character of a cell as [Cell] has it: a blank for an empty one.
func shown(c rune) rune {
	switch {
	case c == rest:
		return 0
	case c < ' ', c >= 0x7f && c <= 0xa0: // a no-break space looks like a blank
		return ' '
	}
	return c
}

// halves blanks half characters: later output may have overwritten the other half of a wide one.
func halves(row []Cell) {
	for x := range row {
		whole := x+1 < len(row) && row[x+1].Char == 0
		switch c := row[x].Char; {
		case c == 0 && (x == 0 || !wide(row[x-1].Char)), c != 0 && wide(c) && !whole:
			row[x].Char = ' '
		}
	}
}

// The bits of a glyph's mode, which the emulator does not export. The emulator draws bold text in
// bright colours, and swaps the colours of reversed text.
const (
	reverse   = 1 << 0
	underline = 1 << 1
	bold      = 1 << 2
	italic    = 1 << 4
	blink     = 1 << 5

	styles = reverse | underline | bold | italic | blink
)

// Sequence returns the escape sequence that sets a terminal to the look, whatever it was before.
func (l Look) Sequence() string {
	style := ansi.NewStyle(ansi.AttrReset)
	for _, of := range []struct {
		bit  int16
		attr ansi.Attr
	}{{bold, ansi.AttrBold}, {italic, ansi.AttrItalic}, {underline, ansi.AttrUnderline}, {blink, ansi.AttrBlink}, {reverse, ansi.AttrReverse}} {
		if l.Mode&of.bit != 0 {
			style = append(style, ansi.NewStyle(of.attr)...)
		}
	}
	fg, bg := l.FG, l.BG
	if l.Mode&reverse != 0 {
		fg, bg = bg, fg
	}
	if fg < 1<<24 { // otherwise the terminal's own
		style = style.ForegroundColor(colour(fg))
	}
	if bg < 1<<24 {
		style = style.BackgroundColor(colour(bg))
	}
	return style.String()
}

func colour(c vt10x.Color) ansi.Color {
	switch {
	case c < 16:
		return ansi.BasicColor(c)
	case c < 256:
		return ansi.IndexedColor(c)
	}
	return ansi.RGBColor{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c)}
}
