package words_test

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/words"
)

func TestPlain(t *testing.T) {
	family := "\U0001F468\u200d\U0001F469"
	for text, want := range map[string]string{
		"two\nlines\tand a tab":             "two\nlines\tand a tab",
		"\x1b[2Jgone":                       `\u001b[2Jgone`,
		"\x1b]52;c;cm0gLXJm\x07":            `\u001b]52;c;cm0gLXJm\u0007`,
		"approved\rdenied":                  `approved\u000ddenied`,
		"\u009b31m and \x7f":                `\u009b31m and \u007f`,
		"user\u202egnp.exe":                 `user\u202egnp.exe`,
		"a\u2028b":                          `a\u2028b`,
		"hidden\U000E0041":                  `hidden\udb40\udc41`,
		"cut \xe2\x82":                      "cut \ufffd\ufffd",
		family + " e\u0301 नमस्ते":          family + " e\u0301 नमस्ते",
		"z" + strings.Repeat("\u0334", 100): "z" + strings.Repeat("\u0334", 8),
	} {
		assert.Equal(t, want, words.Plain(text))
	}
}

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"done\n2030-01-01 answered job-2": "done 2030-01-01 answered job-2",
		"a\r\n\u2028\u0085b\x1b[A":        `a b\u001b[A`,
	} {
		assert.Equal(t, want, words.Line(text))
	}
	assert.Equal(t, "the first; the second", words.Sentence("the first\nthe second"))
}

// FuzzPlain checks that no terminal acts on the result, and that JSON keeps its meaning.
func FuzzPlain(f *testing.F) {
	f.Add("one\ntwo\x1b[31m\u009b\u202e\xff\U000E0041" + strings.Repeat("\u0301", 20))
	f.Fuzz(func(t *testing.T, s string) {
		plain := words.Plain(s)
		for _, r := range plain {
			assert.False(t, r != '\n' && r != '\t' && unicode.IsControl(r) || r >= 0x202a && r <= 0x202e, "%q", plain)
		}
		assert.Equal(t, plain, words.Plain(plain), "it changes nothing that is plain")
		assert.NotContains(t, words.Line(s), "\n")
		quoted, err := json.Marshal(strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\u0301", ""))
		require.NoError(t, err)
		if !strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me) }) {
			assert.JSONEq(t, string(quoted), words.Plain(string(quoted)))
		}
	})
}

// TestScreen checks that text in pieces is shown as if it came at once.
func TestScreen(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	notATerminal := words.OnScreen(write, func(*os.File) bool { return false })
	assert.Equal(t, io.Writer(write), notATerminal)
	screen := words.OnScreen(write, func(*os.File) bool { return true })
	for _, b := range []byte("é\x1b[2J\u009b\U0001F600!") {
		n, err := screen.Write([]byte{b})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	_, err = words.Raw(screen).Write([]byte("\x1b"))
	require.NoError(t, err)
	require.NoError(t, screen.(*words.Screen).Control("\x1b[H"))
	require.NoError(t, write.Close())
	shown, err := io.ReadAll(read)
	require.NoError(t, err)
	assert.Equal(t, "é\\u001b[2J\\u009b\U0001F600!\x1b\x1b[H", string(shown))
}
