package inbox

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/lines"
)

// FuzzReadLine compares readLine with splitting the whole content at once.
func FuzzReadLine(f *testing.F) {
	for _, s := range []string{"", "a", "a\n", "a\r\n\r\n", "\r", "long line\nlonger line\r\nx", "too long by its CR\r\n", "\x00\xff\n"} {
		f.Add([]byte(s), 9)
	}
	f.Fuzz(func(t *testing.T, content []byte, maxLen int) {
		maxLen &= 0xffff
		size := int64(len(content))
		off := int64(0)
		for off < size {
			if content[off] == 0 { // no line begins with a zero: see lineAt
				off++
				continue
			}
			l, err := readLine(bytes.NewReader(content), off, size, maxLen)
			require.NoError(t, err)
			want, rest, terminated := bytes.Cut(content[off:], []byte("\n"))
			want = bytes.TrimSuffix(want, []byte("\r"))
			assert.Equal(t, off, l.start)
			assert.Equal(t, size-int64(len(rest)), l.end)
			assert.Equal(t, terminated, l.terminated)
			assert.Equal(t, len(want) > maxLen, l.tooLong)
			if l.tooLong {
				assert.Equal(t, entryID(want), l.id)
				assert.Empty(t, l.raw)
			} else {
				assert.Equal(t, string(want), string(l.raw))
				assert.Equal(t, len(bytes.TrimSpace(want)) == 0, l.blank())
			}
			require.Greater(t, l.end, off)
			off = l.end
		}
		_, err := readLine(bytes.NewReader(content), off, size, maxLen)
		assert.Equal(t, io.EOF, err)
	})
}

// A file that shrinks while it is read yields what is left of it.
func TestReadLineOfAShrunkFile(t *testing.T) {
	l, err := readLine(bytes.NewReader([]byte("half")), 0, 100, MaxLine)
	require.NoError(t, err)
	assert.Equal(t, line{end: 4, raw: []byte("half")}, l)
}

func FuzzDecodeLine(f *testing.F) {
	for _, s := range []string{
		"", "text", `"s"`, `"\ud83d\ude00\ud800\u0041"`, `{"prompt":"x"}`, `{"prompt":"\ud800\u0041","id":"i","m":{"a":[1e5,null]}}`,
		`{"prompt":1}`, "\"caf\xe9\"", "{\"prompt\":\"caf\xe9\",\"\xff\":1}", `{"id":"a","id":2,"prompt":"x","prompt":"y"}`, "\u00a0\"x\"\u00a0",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, text, meta := decodeLine(raw)
		assert.True(t, utf8.ValidString(text))
		assert.True(t, utf8.ValidString(id))
		for name, value := range meta {
			assert.True(t, utf8.ValidString(name))
			assert.True(t, json.Valid(value), "%q", value)
			assert.NotEqual(t, "prompt", name)
		}
		readable := lines.Valid(raw)
		var whole string
		var members map[string]json.RawMessage
		var prompt string
		switch trimmed := bytes.TrimSpace(readable); {
		case bytes.HasPrefix(trimmed, []byte(`"`)) && json.Unmarshal(trimmed, &whole) == nil:
			assert.Equal(t, whole, text)
		case bytes.HasPrefix(trimmed, []byte("{")) && json.Unmarshal(trimmed, &members) == nil && isString(members["prompt"], &prompt):
			assert.Equal(t, prompt, text)
			var own string
			if isString(members["id"], &own) {
				delete(members, "id")
			}
			assert.Equal(t, own, id)
			assert.Len(t, meta, len(members)-1)
			for name, value := range meta {
				assert.Equal(t, string(members[name]), string(value))
			}
		default:
			assert.Equal(t, string(readable), text)
			assert.Empty(t, id)
			assert.Empty(t, meta)
		}
		// Any text survives as a JSON string, and in an envelope.
		again, err := json.Marshal(text)
		require.NoError(t, err)
		_, got, _ := decodeLine(again)
		assert.Equal(t, text, got)
		_, got, _ = decodeLine([]byte(`{"prompt":` + string(again) + `}`))
		assert.Equal(t, text, got)
	})
}

func isString(v json.RawMessage, s *string) bool {
	return bytes.HasPrefix(v, []byte(`"`)) && json.Unmarshal(v, s) == nil
}
