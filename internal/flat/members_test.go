package flat_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/flat"
)

func parse(t testing.TB, s string) *flat.Members {
	t.Helper()
	m, err := flat.Parse([]byte(s))
	require.NoError(t, err)
	return m
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"", " ", "null", "1", `"a"`, "[]", "[{}]", "{", "{}{}", "{} x", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{'a':1}`, `{"a":01}`, `{"a":+1}`,
		`{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":tru}`, "\ufeff{}", "{}\x00",
	} {
		_, err := flat.Parse([]byte(s))
		assert.Error(t, err, "%q", s)
	}
}

func TestMembersAreRead(t *testing.T) {
	m := parse(t, ` { "s" : "é\n\u00e9\ud83d\ude00" , "i":-42, "max":9223372036854775807, "min":-9223372036854775808, "b":true, "f":false,
		"t":"2026-03-04T12:00:00.123456789+01:00", "o":{"a": [1]}, "null":null, "\u006eame":"x", "S":"upper" } `)
	assert.Equal(t, "é\né😀", m.String("s"))
	assert.Equal(t, "upper", m.String("S"))
	assert.Equal(t, "x", m.String("name"))
	assert.Equal(t, int64(-42), m.Int("i"))
	assert.Equal(t, int64(1<<63-1), m.Int("max"))
	assert.Equal(t, int64(-1<<63), m.Int("min"))
	assert.True(t, m.Bool("b"))
	assert.False(t, m.Bool("f"))
	assert.True(t, m.Has("f"))
	assert.WithinDuration(t, time.Date(2026, 3, 4, 11, 0, 0, 123456789, time.UTC), m.Time("t"), 0)
	assert.Equal(t, `{"a": [1]}`, string(m.Raw("o")))
	require.NoError(t, m.Err())
}

func TestMissingAndNullAreZero(t *testing.T) {
	m := parse(t, `{"null":null}`)
	for _, name := range []string{"null", "none", ""} {
		assert.False(t, m.Has(name))
		assert.False(t, m.IsString(name))
		assert.Empty(t, m.String(name))
		assert.Zero(t, m.Int(name))
		assert.False(t, m.Bool(name))
		assert.Zero(t, m.Time(name))
		assert.Nil(t, m.Raw(name))
	}
	assert.NoError(t, m.Err())
}

func TestWrongTypesAreNamed(t *testing.T) {
	for name, read := range map[string]func(m *flat.Members) any{
		"String": func(m *flat.Members) any { return m.String("a") },
		"Int":    func(m *flat.Members) any { return m.Int("a") },
		"Bool":   func(m *flat.Members) any { return m.Bool("a") },
		"Time":   func(m *flat.Members) any { return m.Time("a") },
	} {
		for _, value := range []string{`"x"`, `1.5`, `9223372036854775808`, `-9223372036854775809`, `1e400`, `{}`, `[1]`, `true`, `"true"`, `"1"`} {
			if (name == "String" && value[0] == '"') || (name == "Bool" && value == "true") {
				continue
			}
			m := parse(t, `{"a":`+value+`,"b":1}`)
			assert.Zero(t, read(m), "%s of %s", name, value)
			assert.ErrorContains(t, m.Err(), "member a", "%s of %s", name, value)
		}
	}
}

func TestFirstWrongTypeIsTheError(t *testing.T) {
	m := parse(t, `{"a":1,"b":2}`)
	m.String("b")
	m.String("a")
	assert.ErrorContains(t, m.Err(), "member b")
}

func TestLastOfANameCounts(t *testing.T) {
	m := parse(t, `{"a":1,"a":"two","\u0061":"three"}`)
	assert.Equal(t, "three", m.String("a"))
	assert.True(t, m.IsString("a"))
}

func TestWithout(t *testing.T) {
	var got []string
	parse(t, `{"b":1,"a":[ ],"c":null,"a":2}`).Without([]string{"b", "z"}, func(name string, raw []byte) {
		got = append(got, name+string(raw))
	})
	assert.Equal(t, []string{"a[ ]", "cnull", "a2"}, got)
}

func TestSurrogates(t *testing.T) {
	for in, want := range map[string]string{
		`\ud83d\ude00`: "😀", `\ud83d`: "\ufffd", `\ude00`: "\ufffd", `\ud83d\u0041`: "\ufffdA", `\ud83dA`: "\ufffdA",
		`\ude00\ud83d`: "\ufffd\ufffd", `\ud83d\ud83d\ude00`: "\ufffd😀", `\\ud83d`: `\ud83d`,
	} {
		assert.Equal(t, want, parse(t, `{"a":"`+in+`"}`).String("a"), in)
		assert.Equal(t, "x", parse(t, `{"`+in+`":"x"}`).String(want), in)
	}
}

// Deeply nested input is refused or read, and does not crash the process.
func TestDeepNesting(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		_, err := flat.Parse([]byte(`{"a":` + strings.Repeat(open, 100_000)))
		assert.Error(t, err)
	}
}

// FuzzParse compares Parse with encoding/json.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "null", "{}", `{"a":"b"}`, `{"a":1e3,"b":1.0,"c":-0,"d":9007199254740993}`, `{"a":"\ud800\u0041\n","\u0061":2}`, `{"a":{"b":[]},"c":null}`,
		`{"a":9223372036854775808}`, `{"a":-9223372036854775809,"b":1.5,"c":0.1e1}`, "{\"a\":\"\xff\"}", " {\n} ", `[{"a":1}]`, `{"a":1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := flat.Parse(text)
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(text, &want)
		if wantErr != nil || want == nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		for name, raw := range want {
			if !utf8.Valid(text) {
				assert.True(t, utf8.ValidString(m.String(name)))
				continue
			}
			var s string
			isString := raw[0] == '"' && json.Unmarshal(raw, &s) == nil
			assert.Equal(t, isString, m.IsString(name), name)
			assert.Equal(t, s, m.String(name), name)
			assert.Equal(t, string(raw) != "null", m.Has(name), name)
			if m.Has(name) {
				assert.Equal(t, string(raw), string(m.Raw(name)), name)
			}
			checkInt(t, text, name, raw)
		}
	})
}

// checkInt checks that Int reads exactly the whole numbers that fit.
func checkInt(t *testing.T, text []byte, name string, raw json.RawMessage) {
	t.Helper()
	m := parse(t, string(text))
	got := m.Int(name)
	var want int64
	if json.Unmarshal(raw, &want) == nil {
		assert.NoError(t, m.Err())
		assert.Equal(t, want, got)
		return
	}
	if m.Err() != nil {
		assert.Zero(t, got)
		return
	}
	// encoding/json wants digits only; 1.0 and 1e3 are whole numbers, too.
	exact, ok := new(big.Rat).SetString(string(raw))
	assert.True(t, ok && exact.Cmp(new(big.Rat).SetInt64(got)) == 0, "%s was read as %d", raw, got)
}
