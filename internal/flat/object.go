package flat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
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
		if utf8.ValidString(text) { // faster than ToValidUTF8
			return text
		}
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	if !strings.Contains(text, `\u`) {
		quoted = strings.ToValidUTF8(quoted, "\uFFFD") // encoding/json would put one for each byte
	}
	var s string
	_ = json.Unmarshal([]byte(quoted), &s) // it is valid
	return s
}

// AppendText appends a string as JSON, on one line and safe inside HTML. Invalid UTF-8 becomes U+FFFD.
func AppendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c <= '\\' && (c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&') {
			if !utf8.ValidString(s) {
				s = string([]rune(s)) // encoding/json would spell out the escape
			}
			quoted, _ := json.Marshal(s) // a string can always be encoded
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Codec either writes the members of an object or reads them, so that one list of members serves both
// directions. Each method takes a member's name and the variable for its value.
type Codec struct {
	to   *Object
	from *Members
}

// To returns a codec that writes.
func To(o *Object) Codec { return Codec{to: o} }

// From returns a codec that reads. Check [Members.Err] afterwards.
func From(m *Members) Codec { return Codec{from: m} }

// Reads reports whether the codec reads.
func (c Codec) Reads() bool { return c.from != nil }

func code[T any](c Codec, name string, v *T, read func(*Members, string) T, write func(*Object, string, T)) {
	if c.from != nil {
		*v = read(c.from, name)
		return
	}
	write(c.to, name, *v)
}

// String is a string that is always written.
func (c Codec) String(name string, v *string) { code(c, name, v, (*Members).String, (*Object).String) }

// Text is a string that is omitted if it is empty.
func (c Codec) Text(name string, v *string) { code(c, name, v, (*Members).String, (*Object).Text) }

// Int is a number that is always written.
func (c Codec) Int(name string, v *int64) { code(c, name, v, (*Members).Int, (*Object).Int) }

// NonZero is a number that is omitted if it is 0.
func (c Codec) NonZero(name string, v *int64) {
	if c.from != nil || *v != 0 {
		c.Int(name, v)
	}
}

// Count is [Codec.Int] for an int.
func (c Codec) Count(name string, v *int) {
	if c.from != nil {
		*v = int(c.from.Int(name))
		return
	}
	c.to.Int(name, int64(*v))
}

// Flag is a boolean that is omitted if it is false.
func (c Codec) Flag(name string, v *bool) {
	if c.from != nil || *v {
		c.Bool(name, v)
	}
}

// Bool is a boolean that is always written.
func (c Codec) Bool(name string, v *bool) { code(c, name, v, (*Members).Bool, (*Object).Bool) }

// Time is a time with its full fraction of a second.
func (c Codec) Time(name string, v *time.Time) { code(c, name, v, (*Members).Time, (*Object).Time) }

// Raw is JSON that is written unchanged, and omitted if it is empty.
func (c Codec) Raw(name string, v *json.RawMessage) {
	if c.from != nil {
		*v = c.from.Raw(name)
		return
	}
	c.to.Raw(name, *v)
}

// Bytes is a string of Base64, omitted if it is empty.
func (c Codec) Bytes(name string, v *[]byte) (err error) {
	if c.from == nil {
		c.to.Text(name, base64.StdEncoding.EncodeToString(*v))
		return nil
	}
	*v = nil
	if text := c.from.String(name); text != "" {
		if *v, err = base64.StdEncoding.DecodeString(text); err != nil {
			return fmt.Errorf("its member %s: %w", name, err)
		}
	}
	return nil
}

// Pointer is a rare value that encoding/json encodes, omitted if it is nil.
func Pointer[T any](c Codec, name string, v **T) error {
	if c.from == nil {
		if *v == nil {
			return nil
		}
		raw, err := JSON(*v)
		c.to.Raw(name, raw)
		return err
	}
	*v = nil
	if !c.from.Has(name) {
		return nil
	}
	*v = new(T)
	if err := json.Unmarshal(c.from.Raw(name), *v); err != nil {
		return fmt.Errorf("its member %s: %w", name, err)
	}
	return nil
}

// List returns a list in JSON. item appends one of its items.
func List[T any](all []T, item func(b []byte, one *T) []byte) []byte {
	b := []byte{'['}
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = item(b, &all[i])
	}
	return append(b, ']')
}

// JSON returns v on one line, with <, > and & readable.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
