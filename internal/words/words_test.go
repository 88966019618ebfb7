package words_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/words"
)

// FuzzBrief holds that a text is one line that no terminal takes for a command.
func FuzzBrief(f *testing.F) {
	f.Add("one\ntwo")
	f.Add("\x1b[31mred\u009b31m\u202e\xff" + strings.Repeat("é", 200))
	f.Fuzz(func(t *testing.T, s string) {
		brief := words.Brief(s)
		assert.NotContains(t, brief, "\n")
		assert.False(t, strings.ContainsFunc(brief, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e }), "%q", brief)
		assert.LessOrEqual(t, len([]rune(brief)), 104)
		if strings.TrimSpace(s) == s && !strings.Contains(s, "\n") && len(s) <= 100 && isPlain(s) {
			assert.Equal(t, s, brief)
		}
	})
}

func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
