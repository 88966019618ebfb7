package flat

import "strings"

// Value is a JSON value as it is spelled, nothing where there is none. What is asked of
// a value of another kind is not there.
type Value string

// Get returns a member of an object, the first of that name. Further names lead further
// in.
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

// Items returns the items of an array. Another value than null is its only item.
func (v Value) Items() (all []Value) {
	switch {
	case v == "" || v == "null":
		return nil
	case v[0] != '[':
		return []Value{v}
	}
	s := scanner{text: string(v), at: 1}
	for s.space(); ; s.space() {
		from := s.at
		if !s.value(1) {
			return all
		}
		all = append(all, v[from:s.at])
		if s.space(); !s.takes(',') {
			return all
		}
	}
}

// IsString reports whether the value is a string.
func (v Value) IsString() bool { return v != "" && v[0] == '"' }

// Text returns the text of a string.
func (v Value) Text() string { return Text(string(v)) }

// Shown returns the text of a string, and another value than null as it is spelled.
func (v Value) Shown() string {
	if v == "null" || v.IsString() {
		return v.Text()
	}
	return string(v)
}
