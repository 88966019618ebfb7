package terminal

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUndo(t *testing.T) {
	for output, want := range map[string]string{
		"":                                     "",
		"text \x1b[2J\x1b[3;4H\r\n\x1b[K":      "",
		"\x1b[?1049h":                          "\x1b[?1049l",
		"\x1b[?1049h\x1b[?1049l":               "",
		"\x1b[?1049h\x1b[?47l":                 "",
		"\x1b[?47h":                            "\x1b[?47l",
		"\x1b[?1000;1006h\x1b[?1004;2004h":     "\x1b[?1000l\x1b[?1004l\x1b[?1006l\x1b[?2004l",
		"\x1b[?25l\x1b[?7l":                    "\x1b[?7h\x1b[?25h",
		"\x1b[?25l\x1b[?25h":                   "",
		"\x1b[?2026h\x1b[?1h\x1b=":             "\x1b[?2026l\x1b[?1l\x1b>",
		"\x1b[?12h\x1b[?1007h\x1b[20h":         "",
		"\x1b[>1u":                             "\x1b[<1u",
		"\x1b[>1u\x1b[>3u\x1b[<u":              "\x1b[<1u",
		"\x1b[<5u":                             "",
		"\x1b[?u\x1b[u\x1b[s":                  "",
		"\x1b[=5;1u":                           "\x1b[=0u",
		"\x1b[>1u\x1b[?1049h\x1b[>5u":          "\x1b[<1u\x1b[?1049l\x1b[<1u",
		"\x1b[>4;2m":                           "\x1b[>4m",
		"\x1b[>4;2m\x1b[>4;0m":                 "",
		"\x1b[>4;2m\x1b[>4m":                   "",
		"\x1b[31m":                             "\x1b[m",
		"\x1b[31mred\x1b[0m":                   "",
		"\x1b[38;5;0mx\x1b[m":                  "",
		"\x1b[2;10r":                           "\x1b7\x1b[r\x1b8",
		"\x1b[2;10r\x1b[r":                     "",
		"\x1b(0":                               "\x1b(B",
		"\x1b(0\x1b(B\x0e\x0f":                 "",
		"a\x0e":                                "\x0f",
		"\x1b[4h":                              "\x1b[4l",
		"\x1b[5 q":                             "\x1b[0 q",
		"\x1b[5 q\x1b[0 q":                     "",
		"\x1b]8;id=1;http://h\x1b\\text":       "\x1b]8;;\x1b\\",
		"\x1b]8;;http://h\x07text\x1b]8;;\x07": "",
		"\x1b]9;4;3;0\x07":                     "\x1b]9;4;0\x1b\\",
		"\x1b]9;4;3;0\x07\x1b]9;4;0;\x07":      "",
		"\x1b[22;0t\x1b]0;title\x07":           "\x1b]0;\x1b\\\x1b[23;0t",
		"\x1b]2;title\x07\x1b]0;\x07":          "",
		"\x1b[22;0t\x1b[23;0t\x1b[23;0t":       "",
		"\x1b[?1049h\x1b[?25l\x1bc":            "",
		"\x1b[?25l\x1b[31m\x1b(0\x1b[!p":       "",
		"\x1b[?1049h\x1b[!p":                   "\x1b[?1049l",
		"\x1bP\x1b[?1049h":                     "\x1b[?1049l",
		"\x1b[?10\x1849h":                      "",
		"\x1b[?1\x0d049h":                      "\x1b[?1049l",
		"\x1b[?99999999999999999999h\x1b[;;h\x1b[?;h\x1b[>;m": "",
	} {
		if want != "" {
			want = "\x1b\\" + want
		}
		var whole, split Follower
		whole.Follow([]byte(output))
		for i := range len(output) {
			split.Follow([]byte(output)[i : i+1])
		}
		assert.Equal(t, want, string(whole.Undo()), "%q", output)
		assert.Equal(t, want, string(split.Undo()), "%q, each byte by itself", output)
	}
}

// What undoes the modes does, whatever a program printed.
func FuzzUndo(f *testing.F) {
	f.Add([]byte("\x1b[?1049;25;2004h\x1b[>1u\x1b[>4;2m\x1b(0\x0e\x1b[31m\x1b[3;4r\x1b]8;;h\x07\x1b[22t\x1b=\x1b[?25l"))
	f.Add([]byte("\x1b[=1u\x1b[?1h\x1b[4h\x1b[3 q\x1b]9;4;1;50\x07\x1b[?2026"))
	f.Fuzz(func(t *testing.T, output []byte) {
		var m Follower
		m.Follow(output)
		m.End()
		undo := m.Undo()
		assert.LessOrEqual(t, len(undo), 1000, "the guardian takes it twice")
		m.Follow(undo)
		assert.Empty(t, m.Undo(), "%q", undo)
		assert.Empty(t, m.End())
	})
}
