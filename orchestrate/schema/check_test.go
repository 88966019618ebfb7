package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/schema"
)

func TestMismatches(t *testing.T) {
	for _, tt := range []struct{ name, schema, value, want string }{
		{"type", `{"type":"object"}`, `[]`, `$: type: wants "object", got []`},
		{"each", `{"type":"object","required":["ok","n"],"properties":{"n":{"type":"integer"},"s":{"enum":["a","b"]},"l":{"items":{"type":"string"}}}}`,
			`{"n":1.5,"s":"c","l":["x",2,3]}`,
			"$.l[1]: type: wants \"string\", got 2\n" +
				"$.l[2]: type: wants \"string\", got 3\n" +
				"$.n: type: wants \"integer\", got 1.5\n" +
				"$.s: enum: wants [\"a\",\"b\"], got \"c\"\n" +
				"$: required: missing properties: [\"ok\"]"},
		{"additional", `{"properties":{"a":true},"additionalProperties":false}`, `{"a":1,"b c":2}`, `$: unexpected additional properties ["b c"]`},
		{"ref", `{"$defs":{"n":{"minimum":3}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":1}`, "$.a: minimum: wants 3, got 1"},
		{"recursion", `{"properties":{"kids":{"items":{"$ref":"#"}},"n":{"type":"string"}}}`, `{"kids":[{"n":"x"},{"n":1}]}`, `$.kids[1].n: type: wants "string", got 1`},
		{"any of", `{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}`, `{}`,
			`$: anyOf: fits none of the 2 schemas: not 1, since $: type: wants "string", got {}; not 2, since $: required: missing properties: ["a"]`},
		{"one of", `{"oneOf":[{"type":"number"},{"minimum":3}]}`, `5`, `$: oneOf: fits more than one of the 2 schemas: 1, 2`},
		{"draft-07 tuple", `{"items":[{"type":"string"},{"type":"number"}],"additionalItems":false}`, `["a","b",1]`,
			"$[1]: type: wants \"number\", got \"b\"\n$[2]: must not be there"},
		{"unevaluated", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"b":1}`, `$: there is a part that the schema does not allow`},
		{"not", `{"items":{"not":{"type":"string"}}}`, `[1,"a"]`, `$[1]: not: wants a value that does not fit {"type":"string"}`},
		{"not, by reference", `{"$defs":{"s":{"type":"string"}},"not":{"$ref":"#/$defs/s"}}`, `"a"`, `$: not: wants a value that does not fit {"$ref":"#/$defs/s"}`},
		{"no JSON", `true`, `{"a":`, `$: not JSON: unexpected EOF`},
		{"empty", `true`, ``, `$: not JSON: it is empty`},
		{"two values", `true`, `1 2`, `$: not JSON: there is something after the first value`},
		{"false", `false`, `1`, `$: must not be there`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := schema.Check([]byte(tt.schema), []byte(tt.value))
			var mismatch *schema.MismatchError
			require.ErrorAs(t, err, &mismatch)
			assert.Equal(t, tt.want, err.Error())
		})
	}
}

// TestRefused has schemas that cannot be used.
func TestRefused(t *testing.T) {
	deep := strings.Repeat(`{"allOf":[`, 150) + "true" + strings.Repeat(`]}`, 150)
	for name, s := range map[string]string{
		"no JSON":              `{`,
		"no schema":            `"string"`,
		"wrong keyword":        `{"minLength":"three"}`,
		"unknown draft":        `{"$schema":"https://example.com/schema"}`,
		"remote reference":     `{"$ref":"https://example.com/schema"}`,
		"file":                 `{"properties":{"a":{"$ref":"other.json#/a"}}}`,
		"missing place":        `{"$ref":"#/$defs/none"}`,
		"missing anchor":       `{"$ref":"#none"}`,
		"itself":               `{"$ref":"#"}`,
		"itself, in two steps": `{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`,
		"itself, by an anchor": `{"anyOf":[{"$anchor":"a","$ref":"#a"}]}`,
		"dynamic reference":    `{"$dynamicRef":"#a"}`,
		"inner id":             `{"properties":{"a":{"$id":"https://example.com/a"}}}`,
		"pattern":              `{"pattern":"(?=a)"}`,
		"too deep":             deep,
		"too large":            `{"title":"` + strings.Repeat("x", 1<<20) + `"}`,
		"unknown type":         `{"type":"strnig"}`,
		"itself, in disguise":  `{"$dynamicAnchor":"a","allOf":[{"$ref":"#a"}]}`,
		"null below":           `{"properties":{"a":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			err := schema.Check([]byte(s), []byte(`{"a":1}`))
			require.ErrorIs(t, err, schema.ErrSchema)
			assert.NotContains(t, err.Error(), "heartbeat://", "where we keep it is nobody's business")
		})
	}
}

// TestFits has values that fit, with schemas as agents write them.
func TestFits(t *testing.T) {
	for name, tt := range map[string]struct{ schema, value string }{
		"draft-07":            {`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"items":[{"$ref":"#/definitions/a"}]}`, `["x",1]`},
		"draft-07, no hash":   {`{"$schema":"http://json-schema.org/draft-07/schema","dependencies":{"a":["b"]}}`, `{"a":1,"b":2}`},
		"2019-09":             {`{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object"}`, `{}`},
		"id of the root":      {`{"$id":"https://example.com/r","$defs":{"a":{"type":"null"}},"items":{"$ref":"#/$defs/a"}}`, `[null]`},
		"format":              {`{"type":"string","format":"date-time"}`, `"yesterday"`},
		"true":                {`true`, `null`},
		"whole float":         {`{"type":"integer"}`, `1.0`},
		"property named $ref": {`{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"}}}`, `{"$ref":"x","$id":"y"}`},
		"other case":          {`{"Type":"string","$REF":"#","allof":[false]}`, `1`},
		"unknown keywords":    {`{"x-note":{"$ref":"#"},"default":7,"contentSchema":{"$ref":"#"}}`, `1`},
		"recursive":           {`{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"next":{"next":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, schema.Check([]byte(tt.schema), []byte(tt.value)))
		})
	}
}

// A schema with 2^40 alternatives is refused.
func TestMultiplyingAlternatives(t *testing.T) {
	var s strings.Builder
	s.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&s, `"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	s.WriteString(`"a40":{"type":"string"}}}`)
	require.ErrorIs(t, schema.Check([]byte(s.String()), []byte("1")), schema.ErrSchema)
}

// A long list of mismatches is cut off.
func TestManyMismatches(t *testing.T) {
	err := schema.Check([]byte(`{"items":{"type":"string"}}`), []byte("[1"+strings.Repeat(",1", 5000)+"]"))
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	assert.Len(t, lines, 21)
	assert.Equal(t, `$[0]: type: wants "string", got 1`, lines[0])
	assert.Equal(t, "...: there is more", lines[20])
}
