package flat

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// Object is a JSON object that is being written: add members, then call End. The
// zero value is an empty object.
type Object struct{ b []byte }

func (o *Object) name(n string) {
	if len(o.b) == 0 {
		o.b = append(make([]byte, 0, 2048), '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(appendText(o.b, n), ':')
}

// String adds a string. Invalid UTF-8 becomes U+FFFD.
func (o *Object) String(name, v string) {
	o.name(name)
	o.b = appendText(o.b, v)
}

// Text adds a string, unless it is empty.
func (o *Object) Text(name, v string) {
	if v != "" {
		o.String(name, v)
	}
}

// Int adds a number.
func (o *Object) Int(name string, v int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

// Bool adds a boolean.
func (o *Object) Bool(name string, v bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, v)
}

// Time adds a time as RFC 3339, with its full fraction of a second.
func (o *Object) Time(name string, v time.Time) {
	o.name(name)
	o.b = append(o.b, '"')
	o.b = append(v.AppendFormat(o.b, time.RFC3339Nano), '"')
}

// Raw adds a value that is already valid JSON, unless it is empty. Line breaks in it
// are removed.
func (o *Object) Raw(name string, v []byte) {
	if len(v) == 0 {
		return
	}
	o.name(name)
	if bytes.IndexByte(v, '\n') >= 0 {
		var line bytes.Buffer
		if json.Compact(&line, v) == nil {
			v = line.Bytes()
		}
	}
	o.b = append(o.b, v...)
}

// End returns the finished object.
func (o *Object) End() []byte {
	if len(o.b) == 0 {
		return []byte("{}")
	}
	return append(o.b, '}')
}
