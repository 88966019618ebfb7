// Package schema checks a result against the JSON Schema that a task asks for, and describes what is wrong with the
// result in words for a model.
//
// $schema tells draft 2020-12 from draft-07. A schema without $schema is read as draft-07 if it has the older form of a
// tuple (items with a list), and otherwise as 2020-12. Drafts 2019-09 and before are read as the next later of these two.
//
// # Limits
//
// Nothing is ever fetched: a reference must lead to a place in the schema itself ("#..."). A schema is refused if
// it has any other reference, a $dynamicRef, an $id below the root, or references that lead back to themselves
// without descending into the value. It is also refused if it is too large, too deep or too slow. `format` is
// ignored, and a pattern is a regular expression of Go. Errors about the schema match [ErrSchema].
//
// # The library
//
// github.com/santhosh-tekuri/jsonschema/v6 would name all that is wrong with a value at once, but compiles its
// meta-schemas when a program starts: that adds 4.5 ms to every command.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// ErrSchema says that the schema itself cannot be used, so that no value can be checked.
var ErrSchema = errors.New("not a usable schema")

const (
	// patience limits schemas whose alternatives multiply. Others take milliseconds.
	patience = 5 * time.Second

	maxSchema = 1 << 20
	maxDepth  = 200  // of schemas and of values: the library recurses once for each level
	maxWhat   = 1000 // bytes of what is wrong with a value
)

// Check returns nil if value fits schema; both are JSON texts. The error is one line: the first place that does not
// fit, such as $.items[].name ($ is the value itself), a colon, and what is wrong. It matches [ErrSchema] if the
// schema cannot be used. Check returns within seconds for any input. A check that it gave up may run on until the
// process ends.
func Check(schema, value []byte) error {
	s, err := compile(schema)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	v, err := decode(value)
	if err != nil {
		return fmt.Errorf("$: %w", err)
	}
	verdict := make(chan error, 1)
	go func() {
		_, err := recovered(func() (any, error) { return nil, s.Validate(v) })
		verdict <- err
	}()
	select {
	case wrong := <-verdict:
		if wrong != nil {
			return errors.New(sentence(wrong))
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%w: checking a value of %d bytes took more than %s: simplify its alternatives", ErrSchema, len(value), patience)
	}
}

// Usable returns nil if values can be checked against the schema. Otherwise the error matches [ErrSchema].
func Usable(schema []byte) error {
	if _, err := compile(schema); err != nil {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return nil
}

func decode(text []byte) (v any, err error) {
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("not JSON: %.*v", maxWhat, err) // a number that is too large is quoted in the error
	}
	if deeper(v, maxDepth) {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	return v, nil
}

// deeper reports whether something in v lies more than n levels deep.
func deeper(v any, n int) bool {
	if n < 0 {
		return true
	}
	var below []any
	switch v := v.(type) {
	case map[string]any:
		below = slices.Collect(maps.Values(v))
	case []any:
		below = v
	}
	return slices.ContainsFunc(below, func(e any) bool { return deeper(e, n-1) })
}

// recovered turns a panic of the library into an error: the library panics on some invalid schemas.
func recovered[T any](do func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%.200v", p)
		}
	}()
	return do()
}

// sentence returns where the value is wrong, and how. Each wrapping error names a place on the way there.
func sentence(err error) string {
	path, at := "$", ""
	for inner := errors.Unwrap(err); inner != nil; err, inner = inner, errors.Unwrap(inner) {
		place := strings.TrimSuffix(strings.TrimPrefix(err.Error(), "validating "), ": "+inner.Error())
		place = strings.TrimPrefix(place, "root")
		if step, below := strings.CutPrefix(place, at+"/"); below { // not by a reference
			path += placeOf(step)
		}
		at = place
	}
	what := strings.Join(strings.Fields(err.Error()), " ")
	what = strings.ReplaceAll(what, "<invalid reflect.Value>", "null")
	if len(what) > maxWhat {
		what = strings.ToValidUTF8(what[:maxWhat], "") + " ..."
	}
	if unnamed := "<anonymous schema>"; strings.Contains(what, unnamed) {
		what = strings.ReplaceAll(what, unnamed, "a subschema") + fmt.Sprintf(" (see #%s of the schema)", at)
	}
	return path + ": " + what
}

// placeOf returns the part of a value that a part of its schema is for.
func placeOf(step string) string {
	keyword, name, _ := strings.Cut(step, "/")
	switch keyword {
	case "properties":
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		plain := func(r rune) bool {
			return r == '_' || r == '-' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		}
		if name != "" && strings.TrimFunc(name, plain) == "" {
			return "." + name
		}
		return fmt.Sprintf("[%.300q]", name)
	case "patternProperties", "additionalProperties", "unevaluatedProperties":
		return ".*"
	case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains":
		return "[" + name + "]"
	}
	return ""
}

// compile reads a schema, and refuses one that would keep the library running for ever.
func compile(text []byte) (*jsonschema.Resolved, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), maxSchema)
	}
	v, err := decode(text)
	if err != nil {
		return nil, err
	}
	switch v.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("it is neither an object nor true or false")
	}
	return recovered(func() (*jsonschema.Resolved, error) {
		root := new(jsonschema.Schema)
		if err := json.Unmarshal(text, root); err != nil {
			return nil, err
		}
		root.ID = "" // no reference uses it
		all := places{}
		all.add("", root)
		if root.Schema, err = all.dialect(root.Schema); err != nil {
			return nil, err
		}
		if err := all.check(); err != nil {
			return nil, err
		}
		return root.Resolve(nil)
	})
}
