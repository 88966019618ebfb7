package screen

import (
	"strings"
	"sync"
	"testing"

	"github.com/hinshun/vt10x"
	"github.com/stretchr/testify/assert"

	"heartbeat/internal/testing/screens"
)

// drawn returns what a screen of 4 rows and 10 columns shows after some output.
func drawn(output ...string) string {
	s := New(4, 10)
	for _, part := range output {
		_, _ = s.Write([]byte(part))
	}
	return s.Text()
}

func TestText(t *testing.T) {
	for output, want := range map[string]string{
		"":                                          "",
		"one\r\n\r\n  two  ":                        "one\n\n  two",
		"\r\n\r\none\u00a0":                         "\n\none",
		"0123456789ab":                              "0123456789\nab",
		"1\r\n2\r\n3\r\n4\r\n5":                     "2\n3\n4\n5",
		"abc\x1b[1;2Hx\x1b[3;3Hy":                   "axc\n\n  y",
		"abc\x1b[;2Hx":                              "axc",
		"abcdef\x1b[3D\x1b[K":                       "abc",
		"abc\r\ndef\x1b[H\x1b[J":                    "",
		"\x1b[31;1mred\x1b[0m \x1b[38;5;3mx":        "red x",
		"one\x1b[?1049htwo":                         "   two",
		"one\x1b[?1049htwo\x1b[?1049l!":             "one!",
		"1\r\n2\r\n3\x1b[2;3r\x1b[3;1H\nx":          "1\n3\nx",
		"1\r\n2\r\n3\x1b[1;1H\x1b[L0":               "0\n1\n2\n3",
		"ab\x1b7\x1b[4;4Hx\x1b8c":                   "abc\n\n\n   x",
		"ab\x1b[sx\x1b[>1u\x1b[<u\x1b[?uy":          "abxy", // the kitty keyboard's sequences, not the cursor's
		"a\x1b]0;title\x07b\x1b]8;;http://h\x1b\\c": "abc",
		"a\x1bP>|x\x1b\\b\x1b_x\x1b\\c":             "abc",
		"a\x1b]unended\x1b[1Cb":                     "a b",
		"a\x1b(0q\x1b(Bb\x0f":                       "aqb",
		"a\x1b[?2026h\x1b[>0q\x1b[c\x1b[6nb":        "ab",
		"a\x1b[99999999999999999999Cb":              "a        b",
		"a\x1b[99999999999999999999I\x1b[1Gb":       "b",
		"a\x1b[-1Pb\x1b[1;2;ob":                     "abb",
		"one\x1bctwo":                               "two",
		"ab\x1b[\r1\nCc\x1b\b7d":                    "ab\n d",
		"é日本x":                                      "é日本x",
		"日本日本日本":                                    "日本日本日\n本",
		"a日本日本日":                                    "a日本日本\n日",
		"日\x1b[1;3Hx":                               "日x",
		"e\u0301\u200bx":                            "ex",
		"a\x7f\x00b":                                "ab",
		"a\xffb":                                    "a\uFFFDb",
	} {
		assert.Equal(t, want, drawn(output), "%q", output)
		assert.Equal(t, want, drawn(strings.Split(output, "")...), "%q, each byte or character by itself", output)
	}
}

func TestGlyphs(t *testing.T) {
	s := New(2, 6)
	_, _ = s.Write([]byte("\x1b[1;31ma\x1b[7mb\x1b[m世"))
	row := s.Picture().Rows[0]
	assert.Equal(t, vt10x.LightRed, row[0].Look.FG, "bold is bright")
	assert.Equal(t, vt10x.Red, row[1].Look.BG, "reversed")
	assert.Equal(t, "世\x00 ", string([]rune{row[2].Char, row[3].Char, row[4].Char}))
}

func TestCharactersAcrossWrites(t *testing.T) {
	assert.Equal(t, "日❯x", drawn("\xe6", "\x97", "\xa5\xe2\x9d", "\xafx"))
	assert.Equal(t, "   x", drawn("\x1b", "[", "3", "C", "x"))
}

func TestResize(t *testing.T) {
	s := New(0, -1)
	_, _ = s.Write([]byte("xy"))
	assert.Equal(t, "y", s.Text())
	s.Resize(2, 20)
	_, _ = s.Write([]byte("\x1b[H\x1b[Jas wide as that"))
	assert.Equal(t, "as wide as that", s.Text())
	s.Resize(2, 2)
	assert.Equal(t, "as", s.Text())
	s.Resize(0, 0)
	assert.Equal(t, "as", s.Text())
}

// After a panic the screen stays as it was, and the program continues.
func TestPanicIsKept(t *testing.T) {
	s := New(2, 10)
	_, _ = s.Write([]byte("one"))
	s.guarded(func() { panic("the emulator has a fault") })
	n, err := s.Write([]byte("two"))
	assert.NoError(t, err)
	assert.Equal(t, 3, n)
	s.Resize(9, 9)
	assert.Equal(t, "one", s.Text())
}

func TestConcurrentUse(t *testing.T) {
	s := New(4, 10)
	var all sync.WaitGroup
	for _, use := range []func(){
		func() { _, _ = s.Write([]byte("hello\r\n")) },
		func() { s.Resize(5, 12) },
		func() { _ = s.Text() },
	} {
		for range 3 {
			all.Go(func() {
				for range 50 {
					use()
				}
			})
		}
	}
	all.Wait()
	assert.Contains(t, s.Text(), "hello")
}

func FuzzScreen(f *testing.F) {
	f.Add([]byte("a\x1b[2;3r\x1b[5M\x1b[9S日\x1b[?1049h\x1b[4P"), byte(3), byte(7))
	f.Add([]byte("\x1b[9@\x1b[3X\x1b[7L\x1b[2T\x1bM\x1bD\x1b#8\x1b[5I\x1b[3Z"), byte(1), byte(1))
	for _, r := range screens.Recordings(f) {
		if r.Rows < 50 {
			f.Add(r.Printed, byte(r.Rows), byte(r.Cols))
		}
	}
	f.Fuzz(func(t *testing.T, output []byte, rows, cols byte) {
		s := New(int(rows), int(cols))
		half := len(output) / 2
		for _, part := range [][]byte{output[:half], output[half:]} {
			n, err := s.Write(part)
			assert.NoError(t, err)
			assert.Equal(t, len(part), n)
			s.Resize(int(cols), int(rows))
		}
		text := s.Text()
		assert.False(t, s.broken, "the emulator panics")
		assert.LessOrEqual(t, strings.Count(text, "\n"), int(max(rows, cols)), text)
	})
}
