package settings

import (
	"bytes"
	"errors"
	"slices"

	"github.com/tailscale/hujson"
)

// blanks are JSON's white space.
const blanks = " \t\r\n"

// maxBrackets bounds the nesting of a file, since the parser recurses. No settings file comes near it.
const maxBrackets = 100_000

// document is a parsed settings file. The offsets in root point into text.
type document struct {
	text []byte
	root hujson.Value
}

// parse parses text. If the error is nil, the top level is an object.
func parse(text []byte) (document, error) {
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) > maxBrackets {
		return document{}, &SyntaxError{errors.New("too many brackets for a settings file")}
	}
	root, err := hujson.Parse(text)
	if err != nil {
		// The parser wants a newline after a line comment, even at the end of the file. Offsets stay the same.
		retried, again := hujson.Parse(append(slices.Clone(text), '\n'))
		if again != nil {
			return document{}, &SyntaxError{err}
		}
		root = retried
	}
	d := document{text: text, root: root}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return document{}, d.shapeError("top level", &root, '{')
	}
	return d, nil
}

// top returns the top-level object.
func (d document) top() box {
	b, _ := d.box(&d.root)
	return b
}

// object returns the object that is b's member, and whether there is such a member. path names it in an error.
func (d document) object(b box, name, path string) (box, bool, error) {
	return d.child(b, name, path, '{')
}

// array is object for a member that must be an array.
func (d document) array(b box, name, path string) (box, bool, error) {
	return d.child(b, name, path, '[')
}

func (d document) child(b box, name, path string, kind hujson.Kind) (box, bool, error) {
	i := b.find(name)
	if i < 0 {
		return box{}, false, nil
	}
	value := b.items[i].value
	if value.Value.Kind() != kind {
		return box{}, false, d.shapeError(path, value, kind)
	}
	inner, _ := d.box(value)
	return inner, true, nil
}

func (d document) shapeError(member string, v *hujson.Value, want hujson.Kind) error {
	return &ShapeError{
		Member: member, Line: d.line(v.StartOffset), Offset: v.StartOffset,
		Have: kindName(v.Value.Kind()), Want: kindName(want),
	}
}

// line returns the 1-based line of an offset.
func (d document) line(offset int) int {
	return 1 + bytes.Count(d.text[:offset], []byte("\n"))
}

func kindName(kind hujson.Kind) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "a boolean"
}

// box is an object or an array with the offsets that an edit needs.
type box struct {
	open, end int // offsets of the opening and the closing bracket
	items     []item
	tail      []byte // white space and comments before the closing bracket
}

// item is a member or an element, from the start of its name or value to the end of its value.
type item struct {
	name          string // "" in an array
	value         *hujson.Value
	start, end    int
	before, after []byte // white space and comments; after is set only if a comma follows
	comma         bool   // a comma follows
}

// box returns the parts of v and whether it is an object or an array.
func (d document) box(v *hujson.Value) (box, bool) {
	b := box{open: v.StartOffset, end: v.EndOffset - 1}
	switch value := v.Value.(type) {
	case *hujson.Object:
		for i := range value.Members {
			name, v := value.Members[i].Name, &value.Members[i].Value
			b.add(item{name: name.Value.(hujson.Literal).String(), value: v, before: name.BeforeExtra}, name.StartOffset)
		}
		b.tail = value.AfterExtra
	case *hujson.Array:
		for i := range value.Elements {
			v := &value.Elements[i]
			b.add(item{value: v, before: v.BeforeExtra}, v.StartOffset)
		}
		b.tail = value.AfterExtra
	default:
		return box{}, false
	}
	return b, true
}

// add completes and appends it. In the parser, an AfterExtra that is not nil means a trailing comma.
func (b *box) add(it item, start int) {
	if n := len(b.items); n > 0 {
		b.items[n-1].comma = true
	}
	it.start, it.end = start, it.value.EndOffset
	it.after, it.comma = it.value.AfterExtra, it.value.AfterExtra != nil
	b.items = append(b.items, it)
}

// find returns the index of the member called name, or -1. The last of several counts, as in JSON.parse and encoding/json.
func (b box) find(name string) int {
	for i, it := range slices.Backward(b.items) {
		if it.name == name {
			return i
		}
	}
	return -1
}

// commaAt returns the offset of the comma after it.
func (it item) commaAt() int { return it.end + len(it.after) }
