package flat

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValuesAreFound(t *testing.T) {
	v := Value(` {"a":{"b":[1,"x",{"c":"y"}],"b":2},"\u006e":"first","n":"second","s":"a\n"} `)
	assert.Equal(t, Value(`[1,"x",{"c":"y"}]`), v.Get("a", "b"))
	assert.Equal(t, Value(`"first"`), v.Get("n"))
	assert.Equal(t, "a\n", v.Get("s").Text())
	for _, none := range []Value{v.Get("b"), v.Get("a", "c"), v.Get("s", "a"), v.Get("a", "b", "c"), Value("").Get("a"), Value("[1]").Get("0")} {
		assert.Empty(t, none)
	}
	items := v.Get("a", "b").Items()
	require.Len(t, items, 3)
	assert.Equal(t, "y", items[2].Get("c").Text())
	assert.False(t, items[0].IsString())
	assert.True(t, items[1].IsString())
	assert.Empty(t, items[0].Text())
}

func TestItems(t *testing.T) {
	for in, want := range map[Value][]Value{
		"": nil, "null": nil, "[]": nil, "[ ]": nil, "1": {"1"}, `{"a":1}`: {`{"a":1}`}, `[ 1 , [2,3] , "]" ]`: {"1", "[2,3]", `"]"`},
		"[1,2": {"1", "2"}, `[1,{"a`: {"1"}, "[": nil, "[,": nil,
	} {
		assert.Equal(t, want, in.Items(), "%s", in)
	}
}

func TestShown(t *testing.T) {
	for in, want := range map[Value]string{"": "", "null": "", `"a\n"`: "a\n", "5": "5", "true": "true", `{"a":1}`: `{"a":1}`} {
		assert.Equal(t, want, in.Shown(), "%s", in)
	}
}

// A line that is cut off tells what is whole in it.
func TestBegun(t *testing.T) {
	whole := `{"type":"user","message":{"content":"x"},"uuid":"1"}`
	for end := range whole {
		m := Begun([]byte(whole[:end]))
		assert.Equal(t, end > len(`{"type":"user"`)-1, m.Exists("type"), "%s", whole[:end])
		assert.Equal(t, end > len(`{"type":"user","message":{"content":"x"}`)-1, m.Exists("message"), "%s", whole[:end])
		assert.False(t, end < len(whole)-1 && m.Exists("uuid"), "%s", whole[:end])
	}
	assert.Equal(t, "1", Begun([]byte(whole)).String("uuid"))
	assert.Equal(t, Value(`{"content":"x"}`), Begun([]byte(whole)).Value("message"))
	assert.False(t, Begun([]byte("[1]")).Exists("type"))
}

// FuzzItems holds arrays to encoding/json.
func FuzzItems(f *testing.F) {
	f.Add(`[1, "a,]", {"b":[ ]}, null, [[]]]`)
	f.Add(`[ ]`)
	f.Fuzz(func(t *testing.T, s string) {
		var want []json.RawMessage
		if json.Unmarshal([]byte(s), &want) != nil || s == "" || s[0] != '[' {
			Value(s).Items() // it must not crash
			Value(s).Get("a", "b")
			return
		}
		got := Value(s).Items()
		require.Len(t, got, len(want))
		for i := range want {
			assert.Equal(t, string(want[i]), string(got[i]))
		}
	})
}
