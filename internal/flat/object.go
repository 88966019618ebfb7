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
	if i := strings.IndexByte(text, '\\'); i >= 0 {
		var s string
		if strings.Contains(text[i:], `\u`) && json.Unmarshal([]byte(quoted), &s) == nil {
			return s // it handles surrogate pairs, and halves of them
		}
		text = unescaped(text)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// unescaped replaces the escapes of two characters.
func unescaped(text string) string {
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' && i+1 < len(text) {
			i++
			switch c = text[i]; c {
			case 'b':
				c = '\b'
			case 'f':
				c = '\f'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			}
		}
		b = append(b, c)
	}
	return string(b)
}

const hexDigits = "0123456789abcdef"

// AppendText appends a string as JSON, on one line and safe inside HTML. Invalid UTF-8 becomes U+FFFD.
func AppendText(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		var as string
		switch {
		case r == utf8.RuneError && n == 1:
			as = "\uFFFD"
		case r == '\u2028':
			as = `\u2028`
		case r == '\u2029':
			as = `\u2029`
		case r >= utf8.RuneSelf:
			i += n
			continue
		default:
			as = escape(c)
		}
		b = append(append(b, s[done:i]...), as...)
		i += n
		done = i
	}
	return append(append(b, s[done:]...), '"')
}

func escape(c byte) string {
	switch c {
	case '"', '\\':
		return string([]byte{'\\', c})
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	return string([]byte{'\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15]})
}
