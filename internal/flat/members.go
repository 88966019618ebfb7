package flat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Members are the members of a JSON object. A member that is missing or null reads
// as the zero value. So does one of the wrong type, which Err then names.
type Members struct {
	list []member
	err  error
}

type member struct{ name, raw string }

// Parse reads one JSON object. If a name occurs twice, the last one counts.
func Parse(object []byte) (*Members, error) {
	// json.Valid uses neither reflection nor recursion, and it bounds the depth to
	// which gjson recurses below.
	if !json.Valid(object) {
		return nil, errors.New("it is not valid JSON, or cut off")
	}
	root := gjson.ParseBytes(object)
	if !root.IsObject() {
		return nil, errors.New("it is not a JSON object")
	}
	m := &Members{list: make([]member, 0, 32)}
	root.ForEach(func(key, value gjson.Result) bool {
		m.list = append(m.list, member{Text(key), value.Raw})
		return true
	})
	return m, nil
}

// MaxDepth is how deep JSON may be nested to be embedded in other JSON.
// encoding/json reads 10,000 levels.
const MaxDepth = 1000

// TooDeep reports whether valid JSON is nested deeper than MaxDepth.
func TooDeep(text []byte) bool {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++ // an escape; there are none outside strings
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Err returns an error for the first member that had the wrong type.
func (m *Members) Err() error { return m.err }

// Has reports whether the member exists and is not null.
func (m *Members) Has(name string) bool {
	v := m.find(name)
	return v.Exists() && v.Type != gjson.Null
}

// Is reports whether the member exists, even as null.
func (m *Members) Is(name string) bool { return m.raw(name) != "" }

// String reads a string. Invalid UTF-8 becomes U+FFFD.
func (m *Members) String(name string) string {
	v := m.find(name)
	if !m.is(name, v, v.Type == gjson.String, "a string") {
		return ""
	}
	return Text(v)
}

// Text returns the string in v, with U+FFFD for invalid UTF-8. It leaves \u escapes
// to encoding/json: in gjson, half of a surrogate pair swallows what follows it.
func Text(v gjson.Result) string {
	var s string
	if strings.Contains(v.Raw, `\u`) && json.Unmarshal([]byte(v.Raw), &s) == nil {
		return s
	}
	return strings.ToValidUTF8(v.Str, "\uFFFD")
}

// IsString reports whether the member is a string.
func (m *Members) IsString(name string) bool { return m.find(name).Type == gjson.String }

// Int reads a whole number.
func (m *Members) Int(name string) int64 {
	v := m.find(name)
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	if !m.is(name, v, v.Type == gjson.Number && err == nil, "a whole number") {
		return 0
	}
	return n
}

// Bool reads a boolean.
func (m *Members) Bool(name string) bool {
	v := m.find(name)
	m.is(name, v, v.IsBool(), "true or false")
	return v.Type == gjson.True
}

// Time reads an RFC 3339 time.
func (m *Members) Time(name string) time.Time {
	v := m.find(name)
	t, err := time.Parse(time.RFC3339, v.Str)
	if !m.is(name, v, v.Type == gjson.String && err == nil, "an RFC 3339 time") {
		return time.Time{}
	}
	return t
}

// Raw returns the member's exact JSON, or nothing if it is missing or null.
func (m *Members) Raw(name string) []byte {
	if !m.Has(name) {
		return nil
	}
	return []byte(m.raw(name))
}

// Without calls f for each member that is not named, in their order.
func (m *Members) Without(names []string, f func(name string, raw []byte)) {
next:
	for _, mb := range m.list {
		for _, n := range names {
			if mb.name == n {
				continue next
			}
		}
		f(mb.name, []byte(mb.raw))
	}
}

func (m *Members) find(name string) gjson.Result {
	if raw := m.raw(name); raw != "" {
		return gjson.Parse(raw)
	}
	return gjson.Result{}
}

func (m *Members) raw(name string) string {
	for i := len(m.list) - 1; i >= 0; i-- {
		if m.list[i].name == name {
			return m.list[i].raw
		}
	}
	return ""
}

func (m *Members) is(name string, v gjson.Result, ok bool, want string) bool {
	if !v.Exists() || v.Type == gjson.Null {
		return false
	}
	if !ok && m.err == nil {
		m.err = fmt.Errorf("its member %s is not %s", name, want)
	}
	return ok
}
