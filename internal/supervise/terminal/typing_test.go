package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What is typed is told from what a terminal reports by itself, and a line that may be
// begun counts as begun.
func TestTyping(t *testing.T) {
	for name, c := range map[string]struct {
		typed               string
		begun, key, entered bool
	}{
		"nothing":                      {"", false, false, false},
		"a letter":                     {"a", true, true, false},
		"a letter of two bytes":        {"ä", true, true, false},
		"a line":                       {"ab\r", false, true, true},
		"two, and a third":             {"a\rb\rc", true, true, true},
		"a line's end in Claude Code":  {"a\\\r", true, true, false},
		"another way to it":            {"a\n", true, true, false},
		"and another":                  {"a\x1b\r", true, true, false},
		"taken back":                   {"aä\x7f\x7f", false, true, false},
		"taken back in part":           {"ab\b", true, true, false},
		"taken back from the middle":   {"ab\x1b[D\x7f\x7f", true, true, false},
		"taken back whole":             {"ab\x15", false, true, false},
		"only its begin":               {"ab\x1b[D\x15", true, true, false},
		"given up after ESC":           {"ab\x1b\x03", false, true, false},
		"given up":                     {"ab\x1b[D\x03", false, true, false},
		"Return alone":                 {"\r", false, true, true},
		"ESC":                          {"\x1b", false, true, false},
		"ESC twice":                    {"\x1b\x1b", false, true, false},
		"an old line":                  {"\x1b[A", true, true, false},
		"an old line, from the keypad": {"\x1bOA", true, true, false},
		"an old line, Emacs":           {"\x10", true, true, false},
		"to the side of nothing":       {"\x1b[D\x1bOC\x1b[5~", false, true, false},
		"another permission mode":      {"\x1b[Z", false, true, false},
		"a paste":                      {"\x1b[200~one\rtwo\r\x1b[201~", true, true, false},
		"a paste that is entered":      {"\x1b[200~one\rtwo\x1b[201~\r", false, true, true},
		"a paste that is taken back":   {"\x1b[200~o\x1b[201~\x7f", true, true, false},
		"letters as numbers":           {"\x1b[97u\x1b[98;2u", true, true, false},
		"Return as a number":           {"a\x1b[13u", false, true, true},
		"Shift and Return":             {"a\x1b[13;2u", true, true, false},
		"Ctrl and C as a number":       {"a\x1b[99;5u", false, true, false},
		"with the lock of numbers":     {"a\x1b[99;133u", false, true, false},
		"as XTerm says it":             {"a\x1b[27;5;99~", false, true, false},
		"a key that is let go":         {"\x1b[97;1:3u", false, true, false},
		"focus":                        {"\x1b[I\x1b[O", false, false, false},
		"what terminal it is":          {"\x1b[?1;2c\x1b[>1;10;0c\x1bP>|term 1\x1b\\", false, false, false},
		"where the cursor is":          {"\x1b[12;40R", false, false, false},
		"a colour":                     {"\x1b]11;rgb:00/00/00\x07\x1b]10;rgb:ff/ff/ff\x1b\\", false, false, false},
		"a mode":                       {"\x1b[?2026;2$y\x1b[?1u\x1b[?997;1n", false, false, false},
		"the mouse":                    {"\x1b[<0;10;20M\x1b[<0;10;20m\x1b[M !!\x1b[32;10;20M", false, false, false},
		"a letter after the mouse":     {"\x1b[M !!a", true, true, false},
		"a letter after a colour":      {"\x1b]11;rgb:00/00/00\x1b\\a", true, true, false},
		"the size":                     {"\x1b[48;24;80;0;0t", false, false, false},
	} {
		for _, parts := range [][]string{{c.typed}, strings.Split(c.typed, "")} { // whole, and each character by itself
			lines := 0
			typing := typing{entered: func() { lines++ }}
			for _, p := range parts {
				typing.keys([]byte(p), time.Now())
			}
			assert.Equal(t, c.begun, typing.hasOpenLine(), name)
			assert.Equal(t, c.entered, lines > 0, name)
			if len(parts) <= 1 { // half a report may be a key
				assert.Equal(t, c.key, !typing.at.IsZero(), name)
			}
		}
	}
}

// ESC and what is typed later are two keys.
func TestTypingAfterEscape(t *testing.T) {
	var typing typing
	now := time.Now()
	typing.keys([]byte("\x1b"), now)
	typing.keys([]byte("]rm"), now.Add(time.Second))
	assert.True(t, typing.hasOpenLine())
}

// A key keeps the session for two seconds, a line that is begun for long, a menu's key for
// no more than any other.
func TestTypingKeepsTheSession(t *testing.T) {
	menu := false
	typing := typing{menu: func() bool { return menu }}
	now := time.Now()
	assert.LessOrEqual(t, typing.rest(now, linePatience), time.Duration(0), "nobody typed")
	typing.keys([]byte("a"), now)
	assert.Equal(t, linePatience, typing.rest(now, linePatience))
	typing.keys([]byte("\r"), now)
	assert.Equal(t, quiet, typing.rest(now, linePatience))
	assert.Equal(t, time.Duration(0), typing.rest(now.Add(quiet), linePatience))
	menu = true
	typing.keys([]byte("1"), now)
	assert.Equal(t, quiet, typing.rest(now, linePatience))
}
