package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// The keywords with subschemas: one, a list of them, or an object of them.
var (
	single  = []string{"not", "if", "then", "else", "items", "additionalItems", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties"}
	listed  = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	members = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

// The keywords without subschemas.
var plain = []string{
	"type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains",
	"minProperties", "maxProperties", "required", "dependentRequired", "$ref", "$id", "$anchor", "$dynamicAnchor",
}

var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// The keywords whose subschemas are for the same value, not for a part of it.
var (
	singleInPlace  = []string{"not", "if", "then", "else"}
	listedInPlace  = []string{"allOf", "anyOf", "oneOf"}
	membersInPlace = []string{"dependentSchemas", "dependencies"}
)

// places are all subschemas of a schema that are objects, with the schema itself first.
func places(v any) (all []map[string]any) {
	s, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	all = append(all, s)
	for _, sub := range under(s, single, listed, members) {
		all = append(all, places(sub)...)
	}
	return all
}

// under are the direct subschemas of a schema.
func under(s map[string]any, single, listed, members []string) (subs []any) {
	for _, k := range single {
		subs = append(subs, s[k])
	}
	for _, k := range listed {
		list, _ := s[k].([]any)
		subs = append(subs, list...)
	}
	for _, k := range members {
		m, _ := s[k].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			subs = append(subs, m[name])
		}
	}
	return subs
}

// effort is the work that the library does to check one value against a schema, without
// descending into the value.
type effort struct {
	height int // how deep the subschemas for the value are nested
	ways   int // how many of them there are, counted each time they are used
}

const maxWays = 10_000

// efforts computes the effort of schemas.
type efforts struct {
	root    any
	anchors map[string]map[string]any
	known   map[uintptr]*effort // by schema; nil while it is being computed
}

// bounded refuses a schema whose check might never end, or take too much work, however
// small the value is.
func bounded(root any, all []map[string]any) error {
	e := efforts{root: root, anchors: anchors(all), known: map[uintptr]*effort{}}
	for _, s := range all {
		if _, err := e.of(s); err != nil {
			return err
		}
	}
	return nil
}

func (e *efforts) of(v any) (effort, error) {
	s, ok := v.(map[string]any)
	if !ok {
		return effort{ways: 1}, nil
	}
	key := reflect.ValueOf(s).Pointer()
	if known, ok := e.known[key]; ok {
		if known == nil {
			return effort{}, errors.New("a $ref leads back to itself without descending into the value")
		}
		return *known, nil
	}
	e.known[key] = nil
	sum := effort{ways: 1}
	for _, sub := range e.inPlace(s) {
		below, err := e.of(sub)
		if err != nil {
			return effort{}, err
		}
		sum.height = max(sum.height, below.height+1)
		sum.ways += below.ways
		if sum.height > maxDepth || sum.ways > maxWays {
			return effort{}, fmt.Errorf("more than %d nested subschemas, or %d in all, are for the same value", maxDepth, maxWays)
		}
	}
	e.known[key] = &sum
	return sum, nil
}

// inPlace are the subschemas of a schema for the same value.
func (e *efforts) inPlace(s map[string]any) []any {
	subs := under(s, singleInPlace, listedInPlace, membersInPlace)
	if ref, ok := s["$ref"].(string); ok {
		subs = append(subs, find(e.root, ref, e.anchors))
	}
	return subs
}

// anchors are the subschemas that have a name, by that name.
func anchors(all []map[string]any) map[string]map[string]any {
	m := map[string]map[string]any{}
	for _, s := range all {
		for _, k := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := s[k].(string); ok {
				m[name] = s
			}
		}
		if id, ok := s["$id"].(string); ok { // an anchor, in draft-07
			m[strings.TrimPrefix(id, "#")] = s
		}
	}
	return m
}

// find follows a reference within a schema. It returns nil if there is nothing, and the
// library refuses such a reference.
func find(root any, ref string, anchors map[string]map[string]any) any {
	pointer, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil
	}
	if pointer != "" && pointer[0] != '/' {
		return any(anchors[pointer])
	}
	at := root
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}
