package stream

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// raws reads all messages of a stream.
func raws(t *testing.T, r io.Reader, note func(string)) (all []string, skipped Skipped) {
	t.Helper()
	skipped, err := Read(r, note, func(m Message) { all = append(all, string(m.Raw)) })
	require.NoError(t, err)
	return all, skipped
}

func TestReader(t *testing.T) {
	tests := map[string]struct {
		in      string
		want    []string
		skipped Skipped
	}{
		"nothing":            {"", nil, Skipped{}},
		"one line":           {`{"a":1}` + "\n", []string{`{"a":1}`}, Skipped{}},
		"no last newline":    {"{\"a\":1}\n{\"b\":2}", []string{`{"a":1}`, `{"b":2}`}, Skipped{}},
		"CRLF":               {"{\"a\":1}\r\n{\"b\":2}\r\n", []string{`{"a":1}`, `{"b":2}`}, Skipped{}},
		"blank lines":        {"\n \t\n{\"a\":1}\n\n", []string{`{"a":1}`}, Skipped{}},
		"no JSON":            {"hello\n{\"a\":1}\n{broken\n", []string{`{"a":1}`}, Skipped{NotJSON: 2}},
		"JSON but no object": {"1\n\"a\"\n[{}]\nnull\n{}\n", []string{`{}`}, Skipped{NotJSON: 4}},
		"torn last line":     {"{\"a\":1}\n{\"b\":", []string{`{"a":1}`}, Skipped{NotJSON: 1}},
		"two on one line":    {`{"a":1}{"b":2}` + "\n", nil, Skipped{NotJSON: 1}},
		"blanks go":          {"{ \"a b\" : [ 1 ,\t\" \\\" \" ] , \"\\\\\" : { } }\n", []string{`{"a b":[1," \" "],"\\":{}}`}, Skipped{}},
		"numbers stay":       {`{"a":1.50e3,"a":12345678901234567890}` + "\n", []string{`{"a":1.50e3,"a":12345678901234567890}`}, Skipped{}},
		"multibyte":          {`{"a":"` + strings.Repeat("é€😀", 30_000) + `"}`, []string{`{"a":"` + strings.Repeat("é€😀", 30_000) + `"}`}, Skipped{}},
		"line separators":    {"{\"a\":\"\u2028\u2029\"}\n", []string{"{\"a\":\"\u2028\u2029\"}"}, Skipped{}},
		"no UTF-8":           {"{\"a\":\"x\xff\xfey\"}\n", []string{"{\"a\":\"x\uFFFDy\"}"}, Skipped{}},
		"zeros":              {"{\"a\":1}\n\x00\x00\x00\n{}\n", []string{`{"a":1}`, `{}`}, Skipped{}},
		"too deep":           {strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000) + "\n{}\n", []string{`{}`}, Skipped{NotJSON: 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for chunks, in := range map[string]io.Reader{
				"at once":        strings.NewReader(tc.in),
				"byte by byte":   iotest.OneByteReader(strings.NewReader(tc.in)),
				"in halves":      iotest.HalfReader(strings.NewReader(tc.in)),
				"with its error": iotest.DataErrReader(strings.NewReader(tc.in)),
			} {
				got, skipped := raws(t, in, nil)
				assert.Equal(t, tc.want, got, chunks)
				assert.Equal(t, tc.skipped, skipped, chunks)
			}
		})
	}
}

func TestReaderLongLines(t *testing.T) {
	whole := `{"type":"user","a":"` + strings.Repeat("x", MaxLine-22) + `"}`
	require.Len(t, whole, MaxLine)
	tests := map[string]struct {
		line string
		cut  int64
	}{
		"as long as may be": {whole, 0},
		"one byte too long": {" " + whole, MaxLine + 1},
		"far too long":      {whole + whole, 2 * MaxLine},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var notes []string
			var all []Message
			skipped, err := Read(io.MultiReader(strings.NewReader(tc.line), strings.NewReader("\n{}\n")),
				func(s string) { notes = append(notes, s) }, func(m Message) { all = append(all, m) })
			require.NoError(t, err)
			require.Len(t, all, 2)
			if tc.cut == 0 {
				assert.True(t, string(all[0].Raw) == whole)
				assert.Empty(t, notes)
			} else {
				assert.Equal(t, TypeHost, all[0].Type)
				assert.Equal(t, SubtypeCut, all[0].Subtype)
				assert.Equal(t, Skipped{Cut: 1}, skipped)
				assert.Len(t, notes, 1)
				var said struct{ Bytes int64 }
				require.NoError(t, json.Unmarshal(all[0].Raw, &said))
				assert.Equal(t, tc.cut, said.Bytes)
			}
			assert.Equal(t, "{}", string(all[1].Raw))
		})
	}
}

func TestReaderNotesAreBounded(t *testing.T) {
	var notes []string
	got, skipped := raws(t, strings.NewReader(strings.Repeat(strings.Repeat("no JSON ", 1000)+"\n", 5000)), func(s string) { notes = append(notes, s) })
	assert.Empty(t, got)
	assert.EqualValues(t, 5000, skipped.NotJSON)
	require.Len(t, notes, maxQuotes)
	assert.Contains(t, notes[maxQuotes-1], "only counted")
	for _, note := range notes {
		assert.Less(t, len(note), 400)
		assert.NotContains(t, note, "\n")
	}
}

func TestReaderError(t *testing.T) {
	var all []string
	_, err := Read(iotest.TimeoutReader(iotest.HalfReader(strings.NewReader("{\"a\":1}\n"+strings.Repeat("x", 64<<10)))), nil,
		func(m Message) { all = append(all, string(m.Raw)) })
	assert.Equal(t, iotest.ErrTimeout, err)
	assert.Equal(t, []string{`{"a":1}`}, all)
}

func TestMessage(t *testing.T) {
	m, ok := Parse([]byte(`{"type":"system","subtype":"init","session_id":"s-1","x":{"type":"no"}}`))
	require.True(t, ok)
	assert.Equal(t, Message{Type: "system", Subtype: "init", SessionID: "s-1", Raw: m.Raw}, m)
	m, ok = Parse([]byte(`{"type":7,"subtype":null,"session_id":"` + strings.Repeat("s", 1000) + `"}`))
	require.True(t, ok)
	assert.Equal(t, Message{Raw: m.Raw}, m)
	m = StandIn(SubtypeLost, 12)
	assert.Equal(t, `{"type":"heartbeat","subtype":"lost","was":"","bytes":12}`, string(m.Raw))
}

// FuzzReader holds the reader against splitting at newlines and encoding/json.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"", "{}", "{}\n{\"a\":[1, \"\\\\\", {}]}\r\n", "x\n{\"type\":\"user\"}", "{\"a\":\"\xc3\"}\n", " {\t} \n\n", "{\"\\u0000\":\"\x00\"}"} {
		f.Add([]byte(s), uint16(1))
		f.Add([]byte(s), uint16(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, chunk uint16) {
		var want []string
		notJSON := int64(0)
		for line := range bytes.SplitSeq(in, []byte("\n")) {
			line = bytes.TrimSpace(bytes.TrimLeft(line, "\x00"))
			var compacted bytes.Buffer
			switch valid := bytes.ToValidUTF8(line, []byte("\uFFFD")); {
			case len(line) == 0:
			case valid[0] != '{' || json.Compact(&compacted, valid) != nil:
				notJSON++
			default:
				want = append(want, compacted.String())
			}
		}
		got, skipped := raws(t, &chunks{bytes.NewReader(in), int(chunk%64) + 1}, nil)
		assert.Equal(t, want, got)
		assert.Equal(t, Skipped{NotJSON: notJSON}, skipped)
	})
}

// chunks reads a few bytes at a time.
type chunks struct {
	r io.Reader
	n int
}

func (c *chunks) Read(b []byte) (int, error) { return c.r.Read(b[:min(len(b), c.n)]) }
