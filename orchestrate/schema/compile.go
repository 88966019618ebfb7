package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	draft07   = "http://json-schema.org/draft-07/schema#"
	draft2020 = "https://json-schema.org/draft/2020-12/schema"

	// whole is the name of the schema, by which its parts can be checked alone.
	whole = "heartbeat://schema"
)

// checker checks a value against one schema.
type checker struct {
	root     any // the decoded schema; its references begin with whole
	anchors  map[string]map[string]any
	dialect  string
	resolved *jsonschema.Resolved

	deadline time.Time
	parts    int // how many parts were checked so far
	found    []Mismatch
}

func compile(schema []byte) (*checker, error) {
	if len(schema) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(schema), maxSchema)
	}
	root, err := decode(schema)
	if err != nil {
		return nil, err
	}
	c := &checker{root: root}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	c.resolved, err = c.resolve(c.root, whole)
	return c, err
}

// prepare finds the dialect, refuses references that leave the schema or never end, and
// makes the others independent of their place.
func (c *checker) prepare() error {
	root, isObject := c.root.(map[string]any)
	if _, isBool := c.root.(bool); !isObject && !isBool {
		return errors.New("it is neither an object nor true or false")
	}
	all := places(c.root)
	var err error
	if c.dialect, err = dialect(root, all); err != nil {
		return err
	}
	delete(root, "$id") // no reference uses it
	for _, s := range all {
		if err := refuse(s); err != nil {
			return err
		}
		strip(s)
	}
	if err := bounded(c.root, all); err != nil {
		return err
	}
	c.anchors = anchors(all)
	for _, s := range all {
		if ref, ok := s["$ref"].(string); ok {
			s["$ref"] = whole + ref
		}
	}
	return nil
}

// dialect is the draft that a schema is read as, by the library's name for it.
func dialect(root map[string]any, all []map[string]any) (string, error) {
	named, ok := root["$schema"].(string)
	if !ok {
		for _, s := range all {
			if _, tuple := s["items"].([]any); tuple {
				return draft07, nil
			}
		}
		return draft2020, nil
	}
	_, name, _ := strings.Cut(strings.TrimSuffix(named, "#"), "://json-schema.org/")
	switch name {
	case "draft-04/schema", "draft-06/schema", "draft-07/schema":
		return draft07, nil
	case "draft/2019-09/schema", "draft/2020-12/schema":
		return draft2020, nil
	}
	return "", fmt.Errorf("its $schema %.100q is not a draft that is known here: leave it out, or name %s", named, draft2020)
}

// refuse returns what is not supported in a part of a schema.
func refuse(s map[string]any) error {
	for _, k := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := s[k]; ok {
			return fmt.Errorf("%s is not supported: use $ref", k)
		}
	}
	if t, ok := s["type"].(string); ok && !slices.Contains(types, t) {
		return fmt.Errorf("type %.100q: there is no such type", t)
	}
	if id, ok := s["$id"].(string); ok && !strings.HasPrefix(id, "#") {
		return fmt.Errorf("$id %.100q: only the root may have one", id)
	}
	if ref, ok := s["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
		return fmt.Errorf("$ref %.100q: it must lead to a place in the schema itself (#...); nothing is fetched", ref)
	}
	return nil
}

// strip removes all but the known keywords. The library ignores the case of names: it would
// take "Type" or "$REF" for keywords.
func strip(s map[string]any) {
	maps.DeleteFunc(s, func(k string, _ any) bool {
		return !slices.Contains(plain, k) && !slices.Contains(single, k) && !slices.Contains(listed, k) && !slices.Contains(members, k)
	})
}

// resolve compiles a part of the schema under a name.
func (c *checker) resolve(part any, name string) (*jsonschema.Resolved, error) {
	if s, ok := part.(map[string]any); ok {
		s = maps.Clone(s)
		s["$schema"] = c.dialect
		part = s
	}
	s, err := typed(part)
	if err != nil {
		return nil, err
	}
	return guarded(func() (*jsonschema.Resolved, error) {
		return s.Resolve(&jsonschema.ResolveOptions{BaseURI: name, Loader: c.load})
	})
}

// load returns the schema that a part refers to.
func (c *checker) load(uri *url.URL) (*jsonschema.Schema, error) {
	if uri.String() != whole {
		return nil, fmt.Errorf("%s is not in the schema, and nothing is fetched", uri)
	}
	root := maps.Clone(c.root.(map[string]any))
	root["$schema"] = c.dialect
	return typed(root)
}

func typed(v any) (*jsonschema.Schema, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	s := new(jsonschema.Schema)
	return s, json.Unmarshal(b, s)
}

// guarded turns a panic of the library into an error: the library panics on some invalid
// schemas.
func guarded[T any](do func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%.200v", p)
		}
	}()
	return do()
}
