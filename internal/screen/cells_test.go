package screen

import (
	"testing"

	"github.com/hinshun/vt10x"
	"github.com/stretchr/testify/assert"
)

func TestCells(t *testing.T) {
	s := New(2, 6)
	_, _ = s.Write([]byte("\x1b[1;31ma\x1b[mb\x1b[7mc\x1b[0;38;2;1;2;3;4md\x1b[m世"))
	plain := func(r rune) Cell { return Cell{Char: r, FG: vt10x.DefaultFG, BG: vt10x.DefaultBG} }
	cells := s.Cells()
	assert.Equal(t, []Cell{
		{Char: 'a', FG: vt10x.LightRed, BG: vt10x.DefaultBG, Bold: true},
		plain('b'),
		{Char: 'c', FG: vt10x.DefaultBG, BG: vt10x.DefaultFG},
		{Char: 'd', FG: 0x010203, BG: vt10x.DefaultBG, Underline: true},
		plain('世'),
	}, cells[0][:5])
	assert.Equal(t, plain(' '), cells[1][0])

	_, _ = s.Write([]byte("\x1b[2;1H"))
	assert.Equal(t, Cell{Char: ' ', FG: vt10x.DefaultBG, BG: vt10x.DefaultFG}, s.Cells()[1][0], "the cursor")
	_, _ = s.Write([]byte("\x1b[?25l"))
	assert.Equal(t, plain(' '), s.Cells()[1][0])
}
