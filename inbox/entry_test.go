package inbox_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

type metadata = map[string]json.RawMessage

func TestEntryText(t *testing.T) {
	for name, c := range map[string]struct {
		line, text, id string
		meta           metadata
	}{
		"verbatim":                {line: "fix the build", text: "fix the build"},
		"verbatim with spaces":    {line: "  indented\t ", text: "  indented\t "},
		"verbatim with NUL":       {line: "a\x00b", text: "a\x00b"},
		"verbatim behind a BOM":   {line: "\ufeff{}", text: "{}"},
		"carriage return inside":  {line: "a\rb", text: "a\rb"},
		"CRLF":                    {line: "dos\r", text: "dos"},
		"only one CR goes":        {line: "dos\r\r", text: "dos\r"},
		"invalid UTF-8":           {line: "caf\xe9!", text: "caf\ufffd!"},
		"JSON string":             {line: `"two\nlines"`, text: "two\nlines"},
		"JSON string with spaces": {line: ` "a b" `, text: "a b"},
		"JSON string, escapes":    {line: `"\u00e9\ud83d\ude00\t\u0000\/"`, text: "é😀\t\x00/"},
		"JSON string, bad UTF-8":  {line: "\"caf\xe9\"", text: "caf\ufffd"},
		"JSON string, CRLF":       {line: "\"x\"\r", text: "x"},
		"JSON string and more":    {line: `"a" b`, text: `"a" b`},
		"two JSON strings":        {line: `"a" "b"`, text: `"a" "b"`},
		"unclosed JSON string":    {line: `"a`, text: `"a`},
		"lone high surrogate":     {line: `"a\ud800b"`, text: "a\ufffdb"},
		"lone low surrogate":      {line: `"a\udc00b"`, text: "a\ufffdb"},
		"surrogate, then escape":  {line: `"\ud83d\u00e9"`, text: "\ufffdé"},
		"number":                  {line: "42", text: "42"},
		"array":                   {line: `["prompt","x"]`, text: `["prompt","x"]`},
		"null":                    {line: "null", text: "null"},
		"object":                  {line: `{"other":1}`, text: `{"other":1}`},
		"empty object":            {line: `{}`, text: `{}`},
		"broken object":           {line: `{"prompt":"x"`, text: `{"prompt":"x"`},
		"object and more":         {line: `{"prompt":"x"} y`, text: `{"prompt":"x"} y`},
		"prompt is no string":     {line: `{"prompt":1,"id":"i"}`, text: `{"prompt":1,"id":"i"}`},
		"prompt is null":          {line: `{"prompt":null}`, text: `{"prompt":null}`},
		"prompt is nested":        {line: `{"a":{"prompt":"x"}}`, text: `{"a":{"prompt":"x"}}`},
		"names are exact":         {line: `{"Prompt":"x","PROMPT":"y"}`, text: `{"Prompt":"x","PROMPT":"y"}`},
		"envelope":                {line: `{"prompt":"x"}`, text: "x"},
		"envelope with spaces":    {line: "\t{ \"prompt\" : \"x\" } ", text: "x"},
		"envelope, CRLF":          {line: "{\"prompt\":\"x\"}\r", text: "x"},
		"envelope, escaped name":  {line: `{"\u0070rompt":"x"}`, text: "x"},
		"envelope, bad UTF-8":     {line: "{\"prompt\":\"caf\xe9\"}", text: "caf\ufffd"},
		"envelope, lone surrogate": {
			line: `{"prompt":"a\ud800b"}`, text: "a\ufffdb",
		},
		"envelope, surrogate, then escape": {
			line: `{"prompt":"\ud83d\u00e9"}`, text: "\ufffdé",
		},
		"envelope with id": {line: `{"id":"job-7","prompt":"x"}`, text: "x", id: "job-7"},
		"envelope with ID": {line: `{"ID":"job-7","prompt":"x"}`, text: "x", meta: metadata{"ID": raw(`"job-7"`)}},
		"id that cannot be printed": {
			line: `{"id":"a\n\u202eb","prompt":"x"}`, text: "x", meta: metadata{"id": raw(`"a\n\u202eb"`)},
		},
		"id with blanks and signs": {line: `{"id":"é 1/2 日本 🐈","prompt":"x"}`, id: "é 1/2 日本 🐈", text: "x"},
		"id is no string": {
			line: `{"id":7,"prompt":"x"}`, text: "x", meta: metadata{"id": raw("7")},
		},
		"metadata is kept as it stands": {
			line: `{"prompt":"x","n":1.50,"big":12345678901234567890,"deep":{"a":[1, 2]},"nothing":null,"<&>":"\u003c"}`,
			text: "x",
			meta: metadata{
				"n": raw("1.50"), "big": raw("12345678901234567890"), "deep": raw(`{"a":[1, 2]}`),
				"nothing": raw("null"), "<&>": raw(`"\u003c"`),
			},
		},
		"last duplicate counts": {
			line: `{"prompt":"a","id":"1","m":1,"prompt":"b","id":"2","m":2}`, text: "b", id: "2", meta: metadata{"m": raw("2")},
		},
		"last prompt is no string": {
			line: `{"prompt":"a","prompt":1}`, text: `{"prompt":"a","prompt":1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := next(t, newBox(t, c.line+"\nanother\n"))
			require.NoError(t, err)
			assert.Equal(t, c.text, e.Text)
			assert.Equal(t, c.id, e.ID)
			assert.Equal(t, c.meta, e.Metadata)
			assert.Equal(t, sha256Hex(strings.TrimSuffix(c.line, "\r")), e.EntryID)
			assert.Equal(t, int64(0), e.Start)
			assert.Equal(t, int64(len(c.line)+1), e.End)
			assert.Equal(t, 1, e.Attempt)
		})
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestBlankLinesAreSkipped(t *testing.T) {
	box := newBox(t, "\n \t\r\n\r\none\n\n\u00a0\ntwo\n \n")
	assert.Equal(t, []string{"one", "two"}, drain(t, box))
	assert.Empty(t, deadLetters(t, box))
	_, err := next(t, box)
	assert.ErrorIs(t, err, inbox.ErrEmpty)
}

// Everything that travels with an entry comes back with its answer: an entry that can be delivered
// can be acknowledged.
func TestDeliveredCanBeAcknowledged(t *testing.T) {
	for name, line := range map[string]string{
		"plain":           "x",
		"NUL":             "a\x00b",
		"invalid UTF-8":   "\xff\xfd",
		"line separators": "a\u2028b\u2029c\u0085d",
		"metadata":        `{"prompt":"x","a":"\ud800","b":"` + "\x7f" + `","c":1e999}`,
		"escaped names":   `{"prompt":"x","\ud800":1,"\u0000":2,"\n":3}`,
		"nested 9,990":    nested(9_990),
		"nested 9,999":    nested(9_999), // encoding/json reads 10,000 levels
		"nested 10,000":   nested(10_000),
		"nested deeper":   nested(20_000),
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, line+"\nlast\n")
			e := deliver(t, box)
			tx := begin(t, box)
			require.NoError(t, tx.Acknowledge("done"))
			require.NoError(t, tx.Commit())
			require.NoError(t, tx.Close())
			assert.Equal(t, []string{"last"}, drain(t, box))
			assert.Equal(t, "done", results(t, box)[0].Reply)
			assert.Equal(t, e.EntryID, results(t, box)[0].EntryID)
		})
	}
}

// nested returns an envelope with metadata that many levels deep.
func nested(levels int) string {
	return `{"prompt":"x","m":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}`
}
