package flat

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Object is a JSON object under construction: add members, then call End. The zero value is an empty object.
type Object struct{ b []byte }

func (o *Object) name(n string) {
	if len(o.b) == 0 {
		o.b = append(make([]byte, 0, 2048), '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(AppendText(o.b, n), ':')
}

// String adds a string. Invalid UTF-8 becomes U+FFFD.
func (o *Object) String(name, v string) {
	o.name(name)
	o.b = AppendText(o.b, v)
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

// Raw adds a value that is already valid JSON, unless it is empty. It removes line breaks from the value.
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

// Text returns the text of a valid JSON string, with U+FFFD for invalid UTF-8, and "" for any other value.
func Text(quoted string) string {
	if len(quoted) < 2 || quoted[0] != '"' {
		return ""
	}
	text := quoted[1 : len(quoted)-1]
	if strings.IndexByte(text, '\\') < 0 { // as nearly always
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	if !strings.Contains(text, `\u`) {
		quoted = strings.ToValidUTF8(quoted, "\uFFFD") // else one for each byte
	}
	var s string
	_ = json.Unmarshal([]byte(quoted), &s) // it is valid
	return s
}

// AppendText appends a string as JSON, on one line and safe inside HTML. Invalid UTF-8 becomes U+FFFD.
func AppendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			if !utf8.ValidString(s) {
				s = string([]rune(s)) // encoding/json would spell out the escape
			}
			quoted, _ := json.Marshal(s) // a string can always be encoded
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
