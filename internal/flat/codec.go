package flat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

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
