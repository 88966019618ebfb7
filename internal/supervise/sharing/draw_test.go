package sharing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/screen"
	"heartbeat/internal/testing/long"
)

// scribble is what a client may print.
func scribble(r *rand.Rand) string {
	words := []string{"hello", "世界", "a\tb", "\r\n", "─╮│", "é", "e\u0301", "🙂", " ", "x\b", "\u00a0", strings.Repeat("long ", 30)}
	var b strings.Builder
	for range 1 + r.IntN(20) {
		switch r.IntN(8) {
		case 0:
			fmt.Fprintf(&b, "\x1b[%d;%dH", r.IntN(30), r.IntN(90))
		case 1:
			fmt.Fprintf(&b, "\x1b[%dm", []int{0, 1, 3, 4, 5, 7, 22, 27, 31, 44, 97, 103}[r.IntN(12)])
		case 2:
			fmt.Fprintf(&b, "\x1b[%d;5;%dm\x1b[48;2;%d;9;200m", 38, r.IntN(256), 1+r.IntN(255))
		case 3:
			fmt.Fprintf(&b, "\x1b[%d%c", r.IntN(4), "ABCDEFGHJKLMPSTX@"[r.IntN(17)])
		case 4:
			fmt.Fprintf(&b, "\x1b[?%d%c", []int{25, 2004, 1, 1049, 1000, 1006, 2026}[r.IntN(7)], "hl"[r.IntN(2)])
		default:
			b.WriteString(words[r.IntN(len(words))])
		}
	}
	return b.String()
}

// A watcher's terminal shows what the session's does, whatever that prints and however
// many pictures the watcher misses.
func TestDrawnAsItIs(t *testing.T) {
	for seed := range long.Rounds(60, 2000) {
		r := rand.New(rand.NewPCG(1, uint64(seed)))
		rows, cols := 1+r.IntN(30), 2+r.IntN(90)
		its, watched := screen.New(rows, cols), screen.New(rows+1, cols)
		c := canvas{size: size{rows + 1, cols}}
		line := strings.Repeat("=", cols)
		for range 10 {
			_, _ = its.Write([]byte(scribble(r)))
			if r.IntN(3) == 0 {
				continue // missed
			}
			want := its.Picture()
			_, _ = watched.Write(c.draw(want, line))
			got := watched.Picture()
			require.Len(t, got.Rows, rows+1)
			for y := range rows {
				require.Equal(t, plainText(want.Rows[y]), plainText(got.Rows[y]), "seed %d, row %d", seed, y)
				require.Equal(t, looks(want.Rows[y]), looks(got.Rows[y]), "seed %d, row %d", seed, y)
			}
			require.Equal(t, line, plainText(got.Rows[rows]))
			require.Equal(t, want.Cursor && want.Y < rows, got.Cursor, "seed %d", seed)
			require.Equal(t, [2]bool{want.CursorKeys, want.Paste}, [2]bool{got.CursorKeys, got.Paste})
			if want.Cursor {
				require.Equal(t, [2]int{want.X, want.Y}, [2]int{got.X, got.Y}, "seed %d", seed)
			}
			assert.Empty(t, c.draw(want, line), "there is nothing new to draw")
		}
	}
}

func plainText(row []screen.Cell) string {
	var b strings.Builder
	for _, c := range row {
		if c.Char != 0 {
			b.WriteRune(c.Char)
		}
	}
	return b.String()
}

// looks leaves blanks out: the emulator erases with colours that it does not draw with.
func looks(row []screen.Cell) (all []string) {
	for _, c := range row {
		if c.Char != 0 && c.Char != ' ' {
			all = append(all, c.Look.Sequence())
		}
	}
	return all
}

// Nothing that a session prints reaches a watcher's terminal but what draws.
func TestOnlyPicturesAreDrawn(t *testing.T) {
	its := screen.New(5, 40)
	_, _ = its.Write([]byte("\x1b]52;c;eA==\x07\x1b]0;title\x07\x1b[?1003h\x1b[>1u\x1b[6n\x1bP+q544e\x1b\\\u202eshown\u009b31m\x7f"))
	drawn := string((&canvas{size: size{6, 40}}).draw(its.Picture(), " ours"))
	assert.Contains(t, drawn, "shown31m")
	for _, no := range []string{"52;c", "title", "1003", "[>1u", "[6n", "+q", "\u202e", "\u009b", "\x7f", "\x07"} {
		assert.NotContains(t, drawn, no)
	}
}

// What does not fit is cut off, and the cursor is seen.
func TestASmallerTerminal(t *testing.T) {
	its := screen.New(6, 10)
	_, _ = its.Write([]byte("one\r\ntwo\r\nthree\r\nfour世界\r\nfive\r\nsix"))
	small := screen.New(3, 5)
	c := canvas{size: size{3, 5}}
	_, _ = small.Write(c.draw(its.Picture(), "ours and more"))
	assert.Equal(t, "five\nsix\nours", small.Text()[:13])
	_, _ = its.Write([]byte("\x1b[4;1H"))
	_, _ = small.Write(c.draw(its.Picture(), "ours"))
	assert.Equal(t, "three\nfour\nours", small.Text(), "half of a wide character is a blank")
	one := screen.New(1, 5)
	_, _ = one.Write((&canvas{size: size{1, 5}}).draw(its.Picture(), "ours"))
	assert.Equal(t, "four", one.Text(), "one row is the session's")
}

func TestKeyOfTheFlag(t *testing.T) {
	k := DetachKey
	assert.Equal(t, byte(28), k.code)
	for name, code := range map[string]byte{"ctrl-x": 24, "ctrl-X": 24, "ctrl-]": 29, `ctrl-\`: 28, "ctrl-_": 31} {
		require.NoError(t, k.Set(name))
		assert.Equal(t, Key{name, code}, k)
	}
	for _, name := range []string{"", "x", "ctrl-", "ctrl-m", "ctrl-I", "ctrl-xx", "alt-x", "ctrl-1", "ctrl-\r"} {
		assert.ErrorContains(t, k.Set(name), "such as", name)
	}
}
