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

	"github.com/google/jsonschema-go/jsonschema"
)

// places maps what follows the # in a reference to the schema or subschema there.
type places map[string]*jsonschema.Schema

// unnamed has the keywords of fields whose JSON tag is "-" in the library.
var unnamed = map[string]string{"Items": "items", "ItemsArray": "items", "DependencySchemas": "dependencies"}

func (p places) add(at string, s *jsonschema.Schema) {
	if s == nil {
		return // the library refuses it
	}
	p[at] = s
	id, _ := strings.CutPrefix(s.ID, "#") // an anchor of draft-07; check refuses any other
	for _, anchor := range []string{s.Anchor, s.DynamicAnchor, id} {
		if anchor != "" {
			p[anchor] = s
		}
	}
	fields := reflect.ValueOf(s).Elem()
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		keyword, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if keyword == "-" {
			keyword = unnamed[field.Name]
		}
		switch sub := fields.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			p.add(at+"/"+keyword, sub)
		case []*jsonschema.Schema:
			for i, s := range sub {
				p.add(at+"/"+keyword+"/"+strconv.Itoa(i), s)
			}
		case map[string]*jsonschema.Schema:
			for name, s := range sub {
				p.add(at+"/"+keyword+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), s)
			}
		}
	}
}

const (
	draft07   = "http://json-schema.org/draft-07/schema#"
	draft2020 = "https://json-schema.org/draft/2020-12/schema"
)

// dialect returns the library's name of the draft to read a schema as.
func (p places) dialect(named string) (string, error) {
	_, name, _ := strings.Cut(strings.TrimSuffix(named, "#"), "://json-schema.org/")
	switch {
	case named == "":
		for _, s := range p {
			if s.ItemsArray != nil {
				return draft07, nil
			}
		}
		return draft2020, nil
	case slices.Contains([]string{"draft-04/schema", "draft-06/schema", "draft-07/schema"}, name):
		return draft07, nil
	case slices.Contains([]string{"draft/2019-09/schema", "draft/2020-12/schema"}, name):
		return draft2020, nil
	}
	return "", fmt.Errorf("its $schema %.100q is not a draft that is known here: leave it out, or name %s", named, draft2020)
}

var types = []string{"", "array", "boolean", "integer", "null", "number", "object", "string"}

// check returns an error for what a schema has that is not supported. It also refuses a schema whose check might never
// end, or be too much work, however small the value is.
func (p places) check() error {
	known := map[*jsonschema.Schema]int{}
	for _, at := range slices.Sorted(maps.Keys(p)) {
		s := p[at]
		if s.DynamicRef != "" || s.Extra["$recursiveRef"] != nil {
			return errors.New("$dynamicRef and $recursiveRef are not supported: use $ref")
		}
		if !slices.Contains(types, s.Type) {
			return fmt.Errorf("type %.100q: there is no such type", s.Type)
		}
		if s.ID != "" && !strings.HasPrefix(s.ID, "#") {
			return fmt.Errorf("$id %.100q: only the root may have one", s.ID)
		}
		if _, err := p.countWays(s, known); err != nil {
			return err
		}
	}
	return nil
}

// maxWays limits the library's work on one value: how many subschemas apply to it, counted each time they are used, and a
// 32nd more at each level above them. So some 200 can be nested: an error below thousands takes a gigabyte.
const maxWays = 10_000

// countWays returns that number for s. known has the number of each schema, 0 while it is being counted.
func (p places) countWays(s *jsonschema.Schema, known map[*jsonschema.Schema]int) (sum int, err error) {
	if n, ok := known[s]; ok {
		if n == 0 {
			return 0, errors.New("a $ref leads back to itself without descending into the value")
		}
		return n, nil
	}
	known[s] = 0
	same := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else},
		slices.Collect(maps.Values(s.DependentSchemas)), slices.Collect(maps.Values(s.DependencySchemas)))
	if s.Ref != "" {
		to, err := p.follow(s.Ref)
		if err != nil {
			return 0, err
		}
		same = append(same, to)
	}
	sum = 1
	for _, sub := range same {
		if sub == nil {
			continue
		}
		below, err := p.countWays(sub, known)
		if err != nil {
			return 0, err
		}
		if sum += below + below/32; sum > maxWays {
			return 0, fmt.Errorf("more than %d subschemas are for the same value, or too many are nested", maxWays)
		}
	}
	known[s] = sum
	return sum, nil
}

// follow returns the subschema that a reference leads to.
func (p places) follow(ref string) (*jsonschema.Schema, error) {
	fragment, within := strings.CutPrefix(ref, "#")
	if !within {
		return nil, fmt.Errorf("$ref %.100q: it must lead to a place in the schema itself (#...); nothing is fetched", ref)
	}
	at, err := url.PathUnescape(fragment)
	if to := p[at]; err == nil && to != nil {
		return to, nil
	}
	return nil, fmt.Errorf("$ref %.100q: there is no such place in the schema", ref)
}
