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
		{"type", `{"type":"object"}`, `[]`, `$: type: [] has type "array", want "object"`},
		{"member", `{"type":"object","required":["ok"],"properties":{"n":{"type":"integer"},"ok":true}}`, `{"n":1.5}`, `$.n: type: 1.5 has type "number", want "integer"`},
		{"required", `{"required":["ok","n"]}`, `{"n":1}`, `$: required: missing properties: ["ok"]`},
		{"items", `{"properties":{"a/b~":{"items":{"enum":["a","b"]}}}}`, `{"a/b~":["a","c"]}`, `$["a/b~"][]: enum: c does not equal any of: [a b]`},
		{"additional", `{"properties":{"a":true},"additionalProperties":false}`, `{"a":1,"b c":2}`, `$: unexpected additional properties ["b c"]`},
		{"ref", `{"$defs":{"n":{"minimum":3}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":1}`, "$.a: minimum: 1/1 is less than 3.000000"},
		{"recursion", `{"properties":{"kids":{"items":{"$ref":"#"}},"n":{"type":"string"}}}`, `{"kids":[{"n":"x"},{"n":1}]}`, `$.kids[].n: type: 1 has type "integer", want "string"`},
		{"any of", `{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}`, `{}`, `$: anyOf: did not validate against any of [a subschema a subschema]: ` +
			`validating /anyOf/0: type: map[] has type "object", want "string" validating /anyOf/1: required: missing properties: ["a"] (see # of the schema)`},
		{"one of", `{"items":{"oneOf":[{"type":"number"},{"minimum":3}]}}`, `[5]`, `$[]: oneOf: validated against both a subschema and a subschema (see #/items of the schema)`},
		{"draft-07 tuple", `{"items":[{"type":"string"},{"type":"number"}],"additionalItems":false}`, `["a","b",1]`, `$[1]: type: b has type "string", want "number"`},
		{"unevaluated", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"b":1}`, `$.*: not: validated against a subschema (see #/unevaluatedProperties of the schema)`},
		{"not", `{"$defs":{"s":{"type":"string"}},"not":{"$ref":"#/$defs/s"}}`, `"a"`, `$: not: validated against a subschema (see # of the schema)`},
		{"null", `{"properties":{"a":{"type":["string","number"]}}}`, `{"a":null}`, `$.a: type: null has type "null", want one of "string, number"`},
		{"draft-07 anchor", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{"$id":"#x","type":"string"}},"properties":{"a":{"$ref":"#x"}}}`, `{"a":1}`,
			`$.a: type: 1 has type "integer", want "string"`},
		{"no JSON", `true`, `{"a":`, `$: not JSON: unexpected end of JSON input`},
		{"empty", `true`, ``, `$: not JSON: unexpected end of JSON input`},
		{"a number of a megabyte", `true`, strings.Repeat("1", 1<<20), `$: not JSON: json: cannot unmarshal number ` + strings.Repeat("1", 970)},
		{"two values", `true`, `1 2`, `$: not JSON: invalid character '2' after top-level value`},
		{"false", `false`, `1`, `$: not: validated against a subschema (see # of the schema)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := schema.Check([]byte(tt.schema), []byte(tt.value))
			require.EqualError(t, err, tt.want)
			assert.NotErrorIs(t, err, schema.ErrSchema)
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
		"itself, spelled so":   `{"$REF":"#"}`,
		"no such place":        `{"allOf":[{}],"$ref":"#/allOf/00"}`,
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

// A schema that sends one value through thousands of references is refused at once: what is wrong with the value would
// be told anew at each, which takes minutes and more than a gigabyte.
func TestChain(t *testing.T) {
	var s strings.Builder
	s.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 9000 {
		fmt.Fprintf(&s, `"a%d":{"$ref":"#/$defs/a%d"},`, i, i+1)
	}
	s.WriteString(`"a9000":{"type":"string"}}}`)
	require.ErrorIs(t, schema.Usable([]byte(s.String())), schema.ErrSchema)
}
