package guild

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadEnvelope(t *testing.T) {
	tests := map[string]struct {
		text string
		want Envelope
		err  string
	}{
		"a record":            {`{"sessionId":"s","status":"failed","error":"e","transcript":[{"status":"x"}]}`, Envelope{SessionID: "s", Status: "failed", Error: "e"}, ""},
		"pretty":              {"{\n  \"sessionId\": \"s\",\n  \"status\": \"failed\",\n  \"error\": null\n}\n", Envelope{SessionID: "s", Status: "failed"}, ""},
		"running":             {`{"cancelHandle":{"pgid":1},"sessionId":"s"}`, Envelope{SessionID: "s"}, ""},
		"escapes":             {`{"session\u0049d":"a\"b\\","x":"}"}`, Envelope{SessionID: `a"b\`}, ""},
		"scalars":             {`{"a":1,"b":-1.5e+3,"c":true,"d":null ,"e":[],"f":{}}`, Envelope{}, ""},
		"nothing":             {`{}`, Envelope{}, ""},
		"nothing at all":      {``, Envelope{}, "it ends early"},
		"cut off":             {`{"sessionId":"s","transcript":[{"a":"b`, Envelope{}, "it ends early"},
		"cut off at the end":  {`{"sessionId":"s","transcript":[]`, Envelope{}, "it ends early"},
		"a list":              {`[]`, Envelope{}, "not with a brace"},
		"twice":               {`{"sessionId":"s","session\u0049d":"t"}`, Envelope{}, `"sessionId" comes twice`},
		"a number":            {`{"sessionId":1}`, Envelope{}, `"sessionId" is no string`},
		"a null":              {`{"status":null}`, Envelope{}, `"status" is no string`},
		"something behind":    {`{} x`, Envelope{}, "follows the object"},
		"crossed brackets":    {`{"a":[}]}`, Envelope{}, "closes what was opened otherwise"},
		"no value":            {`{"a":}`, Envelope{}, "a value starts with"},
		"no colon":            {`{"a" 1}`, Envelope{}, "follows a member's name"},
		"no comma":            {`{"a":1 "b":2}`, Envelope{}, "follows a member"},
		"no name":             {`{1:2}`, Envelope{}, "a member's name starts with"},
		"a comma too many":    {`{"a":1,}`, Envelope{}, "a member's name starts with"},
		"a bad escape":        {`{"\x":1}`, Envelope{}, "invalid character"},
		"an endless number":   {`{"a":` + strings.Repeat("1", maxMember+1) + `}`, Envelope{}, "far too long"},
		"an endless id":       {`{"sessionId":"` + strings.Repeat("1", maxMember) + `"}`, Envelope{}, `"sessionId" is over`},
		"an endless name":     {`{"` + strings.Repeat("1", maxMember) + `":1}`, Envelope{}, ""},
		"a bottomless pit":    {`{"a":` + strings.Repeat("[", maxDepth+1) + `}`, Envelope{}, "it nests deeper than"},
		"deep, but not wrong": {`{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`, Envelope{}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := ReadEnvelope(strings.NewReader(tc.text))
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, Envelope{SessionID: e.SessionID, Status: e.Status, Error: e.Error})
		})
	}
}

func TestRestated(t *testing.T) {
	tests := map[string]string{
		`{"status":"cancelled","a":1}`:                                 `{"status":"failed","a":1,"error":"why"}`,
		`{ "error" : "e" , "status" : "cancelled" }`:                   `{"status":"failed","error":"why"}`,
		`{"status":"cancelled","x":[1,2],"error":null}`:                `{"status":"failed","x":[1,2],"error":"why"}`,
		`{"transcript":[{"status":"cancelled"}],"status":"cancelled"}`: `{"transcript":[{"status":"cancelled"}],"status":"failed","error":"why"}`,
		`{ }`: `{"status":"failed","error":"why"}`,
	}
	for text, want := range tests {
		e, err := ReadEnvelope(strings.NewReader(text))
		require.NoError(t, err)
		p := e.restated(BodyOf([]byte(text)), Failed, "why")
		got, err := io.ReadAll(p.open())
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got), text)
		assert.Len(t, got, int(p.size))
	}
}

// FuzzEnvelope holds the scanner to encoding/json: what is a JSON object there is one
// here, with the same members.
func FuzzEnvelope(f *testing.F) {
	f.Add(`{"sessionId":"s","status":"failed","error":"e","transcript":[{"a":"\"\\"}]}`)
	f.Add("{\n \"session\\u0049d\" : \"\\u00e4\", \"x\": -1.5e3 , \"y\":{\"z\":[null]}}")
	f.Add(`{"error":null}`)
	f.Add(`{"a":"`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ReadEnvelope(strings.NewReader(text))
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &members) != nil || members == nil {
			return // the scanner need not see every mistake
		}
		if err != nil {
			fits := true
			for _, name := range []string{"sessionId", "status", "error"} {
				raw, there := members[name]
				var s *string
				fits = fits && (!there || json.Unmarshal(raw, &s) == nil && (s != nil || name == "error"))
			}
			if fits && !strings.Contains(err.Error(), "twice") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for name, got := range map[string]string{"sessionId": e.SessionID, "status": e.Status, "error": e.Error} {
			var want string
			if raw, there := members[name]; there {
				require.NoError(t, json.Unmarshal(raw, &want))
			}
			require.Equal(t, want, got, name)
		}
		p := e.restated(BodyOf([]byte(text)), Failed, "why")
		changed, err := io.ReadAll(p.open())
		require.NoError(t, err)
		require.Len(t, changed, int(p.size))
		again, err := ReadEnvelope(strings.NewReader(string(changed)))
		require.NoError(t, err)
		require.True(t, json.Valid(changed), "%s", changed)
		require.Equal(t, Envelope{SessionID: e.SessionID, Status: Failed, Error: "why"}, Envelope{SessionID: again.SessionID, Status: again.Status, Error: again.Error})
	})
}
