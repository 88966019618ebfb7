package proxy

import (
	"encoding/json"
	"heartbeat/internal/hosting/config"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSchemasStayAsTheyWere(t *testing.T) {
	for params, want := range map[string]string{
		``:       `{"type":"object"}`,
		` null `: `{"type":"object"}`,
		`{}`:     `{"type":"object"}`,
		` { } `:  `{"type":"object"}`,
		`{"properties":{"a":{"type":"number","maximum":12345678901234567890,"multipleOf":1e-7}},"required":["a"]}`: `{"type":"object","properties":{"a":{"type":"number","maximum":12345678901234567890,"multipleOf":1e-7}},"required":["a"]}`,
		"{\n \"properties\" : { \"z\":{} , \"a\":{\"pattern\":\"<\\u00e9é&>\"} } }":                                "{\"type\":\"object\",\"properties\" : { \"z\":{} , \"a\":{\"pattern\":\"<\\u00e9é&>\"} } }",
		`{"$defs":{"x":{"x-mcp-header":7}},"type":"object"}`:                                                       `{"$defs":{"x":{"x-mcp-header":7}},"type":"object"}`,
	} {
		schema, err := inputSchema(json.RawMessage(params))
		require.NoError(t, err, params)
		assert.Equal(t, want, string(schema))
	}
}

// What the client reads has the members byte for byte; blanks between them are no part
// of that, since an event is one line.
func TestTheListHasTheSchemas(t *testing.T) {
	params := "{\n \"properties\": {\"z\": {\"maximum\": 12345678901234567890, \"pattern\": \"<\\u00e9é&>\u2028\"}, \"a\": {\"x-mcp-header\": 7}}}"
	p, _ := start(t, Options{Tools: []config.Tool{{Name: "z"}, {Name: "odd name/ü", Description: "<b>", Params: json.RawMessage(params)}}})
	data := posted(t, p, listTools)
	assert.Contains(t, data, `"tools":[{"inputSchema":{"type":"object"},"name":"z"},{`)
	assert.Contains(t, data, `{"type":"object","properties":{"z":{"maximum":12345678901234567890,"pattern":"<\u00e9é&>`+"\u2028"+`"},"a":{"x-mcp-header":7}}}`)
	assert.Contains(t, data, `"name":"odd name/ü"`)
	assert.Contains(t, data, `"description":"<b>"`)
}

func TestToolsThatCannotBeServed(t *testing.T) {
	for want, tools := range map[string][]config.Tool{
		`the name "heartbeat-other" of tools[0] is taken`:                                      {{Name: otherTool}},
		`the params of tool "a": not a JSON object`:                                            {{Name: "a", Params: json.RawMessage(`[1]`)}},
		`the params of tool "b": not a JSON object`:                                            {{Name: "b", Params: json.RawMessage(`{"a":`)}},
		`the params of tool "c": its "type" is "string", and arguments are always an "object"`: {{Name: "c", Params: json.RawMessage(`{"type":"string"}`)}},
	} {
		_, err := Start(Options{Tools: tools})
		require.ErrorContains(t, err, want)
	}
}

func FuzzInputSchema(f *testing.F) {
	for _, seed := range []string{``, `null`, `{}`, `{"a":1}`, ` { "a" : [ {} ] } `, `{"type":"object"}`, `{"type":"x"}`, `{"a":1}}`, `{"a":1} {}`, "{\"a\":\"\u2028\"}", `[]`, `"x"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		schema, err := inputSchema(params)
		if err != nil {
			return
		}
		var got map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(schema, &got), "%s", schema)
		assert.Equal(t, `"object"`, string(got["type"]))
		var given map[string]json.RawMessage
		if json.Unmarshal(params, &given) == nil {
			for name, value := range given {
				assert.Equal(t, string(value), string(got[name]))
			}
		}
	})
}
