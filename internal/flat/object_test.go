package flat_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/flat"
)

func TestObjectIsWritten(t *testing.T) {
	var o flat.Object
	o.String("s", "é\n\"")
	o.String("empty", "")
	o.Text("left out", "")
	o.Text("text", "x")
	o.Int("i", -1<<63)
	o.Bool("b", false)
	o.Time("t", time.Date(2026, 3, 4, 12, 0, 0, 120, time.UTC))
	o.Raw("none", nil)
	o.Raw("raw", []byte(`{"a":[1]}`))
	assert.Equal(t, `{"s":"é\n\"","empty":"","text":"x","i":-9223372036854775808,"b":false,"t":"2026-03-04T12:00:00.00000012Z","raw":{"a":[1]}}`,
		string(o.End()))
}

func TestEmptyObject(t *testing.T) {
	assert.Equal(t, "{}", string(new(flat.Object).End()))
}

// An object is one line, whatever the layout of its values.
func TestObjectIsOneLine(t *testing.T) {
	var o flat.Object
	o.String("a\n", "b\r\n\u2028")
	o.Raw("raw", []byte("{\n \"a\": [\r\n1]}\n"))
	got := o.End()
	assert.NotContains(t, string(got), "\n")
	assert.JSONEq(t, `{"a\n":"b\r\n\u2028","raw":{"a":[1]}}`, string(got))
}

// FuzzObject checks that every object is valid JSON and reads back the same.
func FuzzObject(f *testing.F) {
	f.Add("name", "value", int64(1), true, int64(0), []byte(`{"a":1}`))
	f.Add("\"\\\x00", "caf\xe9 \u2028<&>", int64(-1<<63), false, int64(1<<40), []byte("[\n1]"))
	f.Fuzz(func(t *testing.T, name, value string, n int64, b bool, sec int64, raw []byte) {
		name, value = strings.ToValidUTF8(name, "\ufffd"), strings.ToValidUTF8(value, "\ufffd")
		at := time.Unix(sec&(1<<37-1), 5).UTC()
		var o flat.Object
		o.String("s"+name, value)
		o.Text("x"+name, value)
		o.Int("i"+name, n)
		o.Bool("b"+name, b)
		o.Time("t"+name, at)
		if !json.Valid(raw) {
			raw = nil
		}
		o.Raw("r"+name, raw)
		text := o.End()
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &want), "%q", text)
		assert.NotContains(t, string(text), "\n")

		m := parse(t, string(text))
		assert.Equal(t, value, m.String("s"+name))
		assert.Equal(t, value, m.String("x"+name))
		assert.Equal(t, n, m.Int("i"+name))
		assert.Equal(t, b, m.Bool("b"+name))
		assert.Equal(t, at, m.Time("t"+name))
		if m.Has("r" + name) {
			assert.JSONEq(t, string(raw), string(m.Raw("r"+name)))
		}
		assert.NoError(t, m.Err())
		var s string
		require.NoError(t, json.Unmarshal(want["s"+name], &s))
		assert.Equal(t, value, s)
	})
}
