package schema_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/orchestrate/schema"
)

// FuzzCheck: a value that fits alone also fits as a part, and a mismatch has a place and
// words on one line.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		`true`, `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}},"additionalProperties":{"type":"null"}}`,
		`{"items":[{"type":"string"}],"additionalItems":{"minimum":3}}`, `{"anyOf":[{"type":"string"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"enum":[1,[]]}}}`,
		`{"oneOf":[{"minLength":2},{"maxLength":3}],"if":{"const":1},"then":false}`, `{"unevaluatedProperties":false,"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"properties":{"a":{}}}}}`,
		`{"properties":{"a":{"$ref":"#"}},"patternProperties":{"^b":{"type":"number"}}}`, `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"$ref":"#/definitions/a","type":"number"}`,
		`{"prefixItems":[{"$anchor":"x","type":"string"},{"$ref":"#x"}],"contains":{"const":"a"},"uniqueItems":true}`, `{"$ref":"#"}`,
	} {
		for _, v := range []string{`{"a":1,"b":[null]}`, `["a",2]`, `"a"`, `1.5`, `{"a":{"a":{}},"b":"x"}`} {
			f.Add(s, v)
		}
	}
	f.Fuzz(func(t *testing.T, s, v string) {
		err := schema.Check([]byte(s), []byte(v))
		if errors.Is(err, schema.ErrSchema) {
			return
		}
		if err != nil {
			path, what, _ := strings.Cut(err.Error(), ": ")
			assert.NotEmpty(t, what)
			assert.True(t, strings.HasPrefix(path, "$"), path)
			assert.NotContains(t, what, "\n")
		}
		asPart := schema.Check([]byte(`{"properties":{"v":`+s+`}}`), []byte(`{"v":`+v+`}`))
		if json.Valid([]byte(v)) && !strings.Contains(s, "$") && !strings.Contains(s, `"items"`) && !errors.Is(asPart, schema.ErrSchema) {
			assert.Equal(t, err == nil, asPart == nil, "what fits alone fits as a part")
		}
	})
}
