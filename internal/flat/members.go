// Package flat reads and writes one JSON object member by member.
//
// The hook starts once per turn, decides and ends. With encoding/json it would spend a good part of that time
// on reflection, which every start repeats. The records are still declared as tagged structs, and tests check
// that both agree.
package flat

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// Members are the members of a JSON object. A member that is missing or null reads as the zero value. So does
// a member of the wrong type, which Err then names.
type Members struct {
	list []member
	err  error
}

type member struct{ name, raw string }

// Parse reads one JSON object. If a name occurs twice, the last member counts.
func Parse(object []byte) (*Members, error) {
	m := &Members{list: make([]member, 0, 32)}
	isObject, ok := scanObject(string(object), m.add)
	switch {
	case !ok:
		return nil, errors.New("it is not valid JSON, or cut off")
	case !isObject:
		return nil, errors.New("it is not a JSON object")
	}
	return m, nil
}

// Begun reads an object up to the first invalid JSON: a program that is killed while it writes leaves part of a line.
func Begun(object []byte) *Members {
	m := &Members{list: make([]member, 0, 32)}
	scanObject(string(object), m.add)
	return m
}

func (m *Members) add(name, value string) bool {
	m.list = append(m.list, member{Text(name), value})
	return true
}

// MaxDepth is how deeply JSON may be nested to be embedded in other JSON. encoding/json reads 10,000 levels.
const MaxDepth = 1000

// TooDeep reports whether valid JSON is nested deeper than MaxDepth.
func TooDeep(text []byte) bool {
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) <= MaxDepth {
		return false // as nearly always
	}
	s := scanner{text: unsafe.String(unsafe.SliceData(text), len(text)), most: MaxDepth}
	s.space()
	return !s.value(0)
}

// Err returns an error for the first member of the wrong type.
func (m *Members) Err() error { return m.err }

// Has reports whether the member exists and is not null.
func (m *Members) Has(name string) bool {
	raw := m.raw(name)
	return raw != "" && raw != "null"
}

// Exists reports whether the member exists, even as null.
func (m *Members) Exists(name string) bool { return m.raw(name) != "" }

// String reads a string. Invalid UTF-8 becomes U+FFFD.
func (m *Members) String(name string) string {
	raw := m.raw(name)
	if !m.hasType(name, raw, raw != "" && raw[0] == '"', "a string") {
		return ""
	}
	return Text(raw)
}

// IsString reports whether the member is a string.
func (m *Members) IsString(name string) bool { return strings.HasPrefix(m.raw(name), `"`) }

// Int reads a whole number.
func (m *Members) Int(name string) int64 {
	raw := m.raw(name)
	n, err := strconv.ParseInt(raw, 10, 64)
	if !m.hasType(name, raw, err == nil, "a whole number") {
		return 0
	}
	return n
}

// Bool reads a boolean.
func (m *Members) Bool(name string) bool {
	raw := m.raw(name)
	m.hasType(name, raw, raw == "true" || raw == "false", "true or false")
	return raw == "true"
}

// Time reads an RFC 3339 time.
func (m *Members) Time(name string) time.Time {
	raw := m.raw(name)
	t, err := time.Parse(time.RFC3339, Text(raw))
	if !m.hasType(name, raw, err == nil, "an RFC 3339 time") {
		return time.Time{}
	}
	return t
}

// Value returns the member as it is spelled.
func (m *Members) Value(name string) Value { return Value(m.raw(name)) }

// Raw returns the member's exact JSON, nil if it is missing or null.
func (m *Members) Raw(name string) []byte {
	if raw := m.raw(name); raw != "" && raw != "null" {
		return []byte(raw)
	}
	return nil
}

// Without calls f for each member that is not named, in order.
func (m *Members) Without(names []string, f func(name string, raw []byte)) {
	for _, mb := range m.list {
		if !slices.Contains(names, mb.name) {
			f(mb.name, []byte(mb.raw))
		}
	}
}

func (m *Members) raw(name string) string {
	for i := len(m.list) - 1; i >= 0; i-- {
		if m.list[i].name == name {
			return m.list[i].raw
		}
	}
	return ""
}

func (m *Members) hasType(name, raw string, ok bool, want string) bool {
	if raw == "" || raw == "null" {
		return false
	}
	if !ok && m.err == nil {
		m.err = fmt.Errorf("its member %s is not %s", name, want)
	}
	return ok
}

// Value is a JSON value as it is spelled, "" for none. A method that does not fit the kind of value returns nothing.
type Value string

// Get returns the first member of an object with that name. Further names lead into nested objects.
func (v Value) Get(names ...string) Value {
	for _, want := range names {
		in := v
		v = ""
		scanObject(string(in), func(name, value string) bool {
			if name[1:len(name)-1] == want || strings.IndexByte(name, '\\') >= 0 && Text(name) == want {
				v = Value(value)
			}
			return v == ""
		})
	}
	return v
}

// Items returns the items of an array. Of any other value except null it returns that value alone.
func (v Value) Items() (all []Value) {
	switch {
	case v == "" || v == "null":
		return nil
	case v[0] != '[':
		return []Value{v}
	}
	s := scanner{text: string(v), most: maxNesting}
	s.list(1, ']', func() bool {
		from := s.at
		if !s.value(1) {
			return false
		}
		all = append(all, v[from:s.at])
		return true
	})
	return all
}

// IsString reports whether the value is a string.
func (v Value) IsString() bool { return v != "" && v[0] == '"' }

// Text returns the text of a string.
func (v Value) Text() string { return Text(string(v)) }

// Shown returns the text of a string, "" for null, and any other value as it is spelled.
func (v Value) Shown() string {
	if v == "null" || v.IsString() {
		return v.Text()
	}
	return string(v)
}
