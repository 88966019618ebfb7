package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	maxFound = 20  // mismatches in one error
	maxParts = 500 // checks in search of them
	maxWhat  = 300 // bytes of one mismatch
)

// judge asks the library whether the value fits. If it does not, judge finds the parts of
// the value that do not: the library stops at the first, and does not say where in the
// value it is.
func (c *checker) judge(v any) error {
	err := validate(c.resolved, v)
	if err == nil {
		return nil
	}
	c.explain(c.root, v, "$")
	if len(c.found) == 0 {
		c.add("$", what(err))
	}
	return &MismatchError{c.found}
}

func validate(s *jsonschema.Resolved, v any) error {
	_, err := guarded(func() (any, error) { return nil, s.Validate(v) })
	return err
}

// try checks a part of the value against a part of the schema. If that is not possible, it
// finds no mismatch: that the whole value does not fit is known already.
func (c *checker) try(part, v any) error {
	if c.parts++; c.exhausted() {
		return nil
	}
	s, err := c.resolve(part, "heartbeat://part")
	if err != nil {
		return nil
	}
	return validate(s, v)
}

func (c *checker) exhausted() bool {
	return c.parts > maxParts || len(c.found) > maxFound || time.Now().After(c.deadline)
}

func (c *checker) add(path, what string) {
	switch n := len(c.found); {
	case slices.Contains(c.found, Mismatch{path, what}), n > maxFound:
	case n == maxFound:
		c.found = append(c.found, Mismatch{"...", "there is more"})
	default:
		c.found = append(c.found, Mismatch{path, what})
	}
}

// explain finds the mismatches of v with a schema that v has to fit.
func (c *checker) explain(schema, v any, path string) {
	s, ok := schema.(map[string]any)
	if c.exhausted() || !ok {
		if schema == false {
			c.add(path, "must not be there")
		}
		return
	}
	if ref, ok := s["$ref"].(string); ok {
		c.explain(find(c.root, strings.TrimPrefix(ref, whole), c.anchors), v, path)
		if c.dialect == draft07 {
			return // draft-07 ignores what is beside a $ref
		}
	}
	own := maps.Clone(s)
	if !has(s, "unevaluatedItems", "unevaluatedProperties") { // these depend on the others
		c.inPlace(own, v, path)
		c.below(own, v, path)
	}
	if err := c.try(own, v); err != nil {
		c.add(path, plainly(what(err), own, v))
	}
}

// plainly says in JSON what a keyword wants and what the value is, where the library
// answers in Go syntax.
func plainly(complaint string, s map[string]any, v any) string {
	keyword, _, _ := strings.Cut(complaint, ":")
	switch keyword {
	case "not": // also the library's form of an unevaluated part that must not be there
		if forbidden, ok := s["not"]; ok {
			text, _ := json.Marshal(forbidden) // it was decoded from JSON
			return fmt.Sprintf("not: wants a value that does not fit %s", cut(strings.ReplaceAll(string(text), whole, ""), maxWhat))
		}
		return "there is a part that the schema does not allow"
	case "type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern":
		wants, _ := json.Marshal(s[keyword]) // both were decoded from JSON
		got, _ := json.Marshal(v)
		return fmt.Sprintf("%s: wants %s, got %s", keyword, cut(string(wants), maxWhat), cut(string(got), maxWhat))
	}
	return complaint
}

func has(s map[string]any, keywords ...string) bool {
	return slices.ContainsFunc(keywords, func(k string) bool { _, ok := s[k]; return ok })
}

// inPlace explains by the subschemas for the same value, and removes them from what is left
// to check.
func (c *checker) inPlace(own map[string]any, v any, path string) {
	all, _ := own["allOf"].([]any)
	for _, s := range all {
		c.explain(s, v, path)
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		alternatives, ok := own[k].([]any)
		if ok && c.try(map[string]any{k: alternatives}, v) != nil {
			c.add(path, k+": "+c.alternatives(alternatives, v, path))
		}
		delete(own, k)
	}
	delete(own, "allOf")
	delete(own, "$ref")
}

// alternatives says why none of the schemas fits, or which of them do.
func (c *checker) alternatives(schemas []any, v any, path string) string {
	var fits, why []string
	for i, s := range schemas {
		alone := checker{root: c.root, anchors: c.anchors, dialect: c.dialect, deadline: c.deadline, parts: c.parts}
		err := alone.try(s, v)
		if err == nil {
			fits = append(fits, strconv.Itoa(i+1))
			continue
		}
		if alone.explain(s, v, path); len(alone.found) == 0 {
			alone.add(path, what(err))
		}
		c.parts = alone.parts
		why = append(why, fmt.Sprintf("not %d, since %s: %s", i+1, alone.found[0].Path, alone.found[0].What))
	}
	if len(fits) > 0 {
		return fmt.Sprintf("fits more than one of the %d schemas: %s", len(schemas), strings.Join(fits, ", "))
	}
	return fmt.Sprintf("fits none of the %d schemas: %s", len(schemas), cut(strings.Join(why, "; "), 3*maxWhat))
}

// below explains by the subschemas for the parts of the value. Each becomes true in what is
// left to check, so that the property still counts as named.
func (c *checker) below(own map[string]any, v any, path string) {
	switch v := v.(type) {
	case map[string]any:
		c.properties(own, v, path)
	case []any:
		c.items(own, v, path)
	}
}

func (c *checker) properties(own, v map[string]any, path string) {
	props, _ := own["properties"].(map[string]any)
	rest, restricted := own["additionalProperties"].(map[string]any)
	restricted = restricted && !has(own, "patternProperties")
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if s, ok := props[name]; ok {
			c.explain(s, v[name], member(path, name))
		} else if restricted {
			c.explain(rest, v[name], member(path, name))
		}
	}
	if props != nil {
		own["properties"] = allTrue(props)
	}
	if restricted {
		own["additionalProperties"] = true
	}
}

func (c *checker) items(own map[string]any, v []any, path string) {
	tuple, rest := "prefixItems", "items"
	if c.dialect == draft07 {
		if _, ok := own["items"].([]any); ok {
			tuple, rest = "items", "additionalItems"
		}
	}
	first, _ := own[tuple].([]any)
	others, ok := own[rest]
	for i := range v {
		at := path + "[" + strconv.Itoa(i) + "]"
		if i < len(first) {
			c.explain(first[i], v[i], at)
		} else if ok {
			c.explain(others, v[i], at)
		}
	}
	delete(own, tuple)
	delete(own, rest)
}

func allTrue(m map[string]any) map[string]any {
	all := make(map[string]any, len(m))
	for k := range m {
		all[k] = true
	}
	return all
}

// member is the path of a member of an object.
func member(path, name string) string {
	plain := func(r rune) bool {
		return r == '_' || r == '-' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	if name != "" && strings.TrimFunc(name, plain) == "" {
		return path + "." + name
	}
	return path + "[" + cut(strconv.Quote(name), maxWhat) + "]"
}

// what is the library's message without the path in the schema.
func what(err error) string {
	text := err.Error()
	for strings.HasPrefix(text, "validating ") {
		_, rest, ok := strings.Cut(text, ": ")
		if !ok {
			break
		}
		text = rest
	}
	return cut(strings.Join(strings.Fields(text), " "), maxWhat)
}

// cut shortens a text to about n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " ..."
}
