package flat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/tidwall/gjson"
)

// FuzzScan holds the scanner to encoding/json.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		"", " ", "{}", "[]", "null", "nul", "-", "-0", "01", "1.", "1.5e", "1.5E+3", "1e-", ".5", "+1", `"`, `"\`, `"\u12"`, `"\u12aF"`, `"\x"`, "\"\x1f\"", "\"\x7f\xff\"",
		`{"a":1,}`, `[1,]`, `[,1]`, `{"a" : [ true , false ] }x`, `{"a":1 "b":2}`, `{1:2}`, "{}\x00", "\x00", "\"a\x00\"", "\v{}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		isObject, ok := scanObject(s, func(_, value string) bool { return assert.NotEmpty(t, value) })
		assert.Equal(t, json.Valid([]byte(s)), ok, "%q", s)
		assert.Equal(t, strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{"), isObject, "%q", s)
	})
}

func TestTheDeepestThatIsRead(t *testing.T) {
	for _, deep := range []int{maxNesting - 1, maxNesting, maxNesting + 1, 100_000} {
		for _, text := range []string{
			strings.Repeat("[", deep) + strings.Repeat("]", deep),
			strings.Repeat(`{"a":`, deep-1) + "{}" + strings.Repeat("}", deep-1),
			strings.Repeat(`[{"a":`, deep/2) + "1" + strings.Repeat("}]", deep/2),
		} {
			_, ok := scanObject(text, nil)
			assert.Equal(t, json.Valid([]byte(text)), ok, "%d levels of %.6s", deep, text)
		}
	}
}

// Brackets in a text are no nesting: prompts are full of them.
func TestTooDeep(t *testing.T) {
	text := `" \"` + strings.Repeat("{[", MaxDepth) + `\\"`
	assert.False(t, TooDeep([]byte(`{"prompt":`+text+`}`)))
	assert.False(t, TooDeep([]byte(` [`+strings.Repeat("{},[],", MaxDepth)+text+"] ")), "beside each other")
	for _, pair := range []string{"[]", "{}"} {
		open := strings.Replace(pair[:1], "{", `{"a":`, 1)
		for deep, want := range map[int]bool{MaxDepth: false, MaxDepth + 1: true} {
			for _, inner := range []string{pair, open + text + pair[1:]} {
				json := "\n" + strings.Repeat(open, deep-1) + inner + strings.Repeat(pair[1:], deep-1)
				assert.Equal(t, want, TooDeep([]byte(json)), "%d levels of %s", deep, pair)
			}
		}
	}
}

// FuzzText holds texts to another library, and to what was read before.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "<&>", "é\u2028\u2029😀", "\xff\xfe\xffa", "\xe2\x80", `\u00e9\n`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := string(AppendText(nil, s))
		assert.Equal(t, string(gjson.AppendJSONString(nil, s)), b)
		assert.Equal(t, strings.ToValidUTF8(s, "\uFFFD") == s, Text(b) == s)
		for _, quoted := range []string{b, `"` + s + `"`, s} {
			if !json.Valid([]byte(quoted)) || quoted == "" || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
				continue
			}
			var want string
			if strings.Contains(quoted, `\u`) {
				assert.NoError(t, json.Unmarshal([]byte(quoted), &want))
			} else {
				want = strings.ToValidUTF8(gjson.Parse(quoted).Str, "\uFFFD")
			}
			assert.Equal(t, want, Text(quoted), "%q", quoted)
		}
	})
}
