package flat_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/flat"
)

func FuzzEach(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "a" : 1 , "b":[{"c":"]"}],"d":"\"}","e":{"f":null}} `, `{"a":"x","a":true}`, `{"\u0061":-1e5}`, `{"a":[],"b":{}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(s), &want) != nil || want == nil {
			return
		}
		got := map[string]string{}
		flat.Each([]byte(s), func(name, value []byte) {
			var n string
			require.NoError(t, json.Unmarshal(name, &n), "%q", name)
			got[n] = string(value)
		})
		require.Len(t, got, len(want))
		for name, value := range want {
			assert.Equal(t, string(value), got[name])
		}
	})
}

func FuzzWriteText(f *testing.F) {
	for _, s := range []string{``, `x`, `\n\u00e9`, `\ud83d\ude00`, `\ud83dx`, "é\xff", `\\\"`, `\ud83d\ud83d\ude00`} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, s string, shift uint8) {
		// The string spans the position where it is cut.
		quoted := `"` + strings.Repeat("x", 64<<10-int(shift)) + s + `"`
		var want string
		if json.Unmarshal([]byte(quoted), &want) != nil || !json.Valid([]byte(quoted)) {
			return
		}
		var got strings.Builder
		require.NoError(t, flat.WriteText(&got, []byte(quoted)))
		if strings.Contains(want, "\uFFFD") {
			return // half of a surrogate pair and invalid UTF-8 may count differently
		}
		assert.True(t, want == got.String())
	})
}
