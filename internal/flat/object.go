package flat

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
)

// Object is a JSON object being written: append members, then End. The zero
// value is an empty one.
type Object struct{ b []byte }

func (o *Object) name(n string) {
	if len(o.b) == 0 {
		o.b = append(make([]byte, 0, 2048), '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(gjson.AppendJSONString(o.b, n), ':')
}

// String adds a string; what is not UTF-8 in it becomes U+FFFD.
func (o *Object) String(name, v string) {
	o.name(name)
	o.b = gjson.AppendJSONString(o.b, v)
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

// Time adds a time, as RFC 3339 with the fraction that it has.
func (o *Object) Time(name string, v time.Time) {
	o.name(name)
	o.b = append(o.b, '"')
	o.b = append(v.AppendFormat(o.b, time.RFC3339Nano), '"')
}

// Raw adds a value that is valid JSON already, unless it is empty. It is put on
// one line.
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

// End is the finished object.
func (o *Object) End() []byte {
	if len(o.b) == 0 {
		return []byte("{}")
	}
	return append(o.b, '}')
}
