package words_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/words"
)

// FuzzBrief checks that the result is one line that no terminal acts on.
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

func TestName(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef"
	for name, ids := range map[string][2]string{
		"job-1":        {"job-1", hash},
		"0123456789ab": {"", hash + hash},
		"fedcba987654": {"fedcba9876540123456789abcdef0123", hash},
		"3f1c2ab8":     {"3F1C2AB8-328b-4121-8f97-7f6c95137940", hash},
		"czpaoj7v4p2x": {"czpaoj7v4p2xyawffghiieroja", hash},
		"deadbeef":     {"deadbeef", hash},
		"x y":          {"x\u202ey", hash},
	} {
		assert.Equal(t, strings.ToUpper(name), strings.ToUpper(words.Name(ids[0], ids[1])))
	}
}

func TestShort(t *testing.T) {
	for id, want := range map[string]string{
		"":                                     "",
		"s1":                                   "s1",
		"session-with-a-long-name":             "session-with",
		"3f1c2ab8-328b-4121-8f97-7f6c95137940": "3f1c2ab8",
		"01a22612-4f3b-7121-8f97-7f6c95137940": "01a22612-4f3b", // of a client that gives ids by time
		"日本語日本語日本語日本語日本語": "日本語日本語日本語日本語",
		"\x1b[2J": `\u001b[2J`,
	} {
		assert.Equal(t, want, words.Short(id))
	}
}

func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
