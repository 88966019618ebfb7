package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

const (
	// blanks are JSON's white space.
	blanks = " \t\r\n"
	// maxBrackets bounds a file's nesting, since the parser recurses. Settings files stay far below.
	maxBrackets = 100_000
)

// byteOrderMark may precede the JSON. Some editors write it, and the parser rejects it.
var byteOrderMark = []byte("\xef\xbb\xbf")

// document is a JSON file that may contain comments and trailing commas. An edit leaves the spelling of everything else
// as it is, and lays out what it adds as the client does.
type document struct {
	text   []byte // as parsed, without a byte order mark
	root   hujson.Value
	marked bool
}

// parse reads a file whose top level must be an object. An empty file counts as an empty object.
func parse(file []byte) (*document, error) {
	d := &document{}
	if d.text, d.marked = bytes.CutPrefix(file, byteOrderMark); len(file) == 0 {
		d.text = []byte("{}\n")
	}
	err := errors.New("too many brackets for a settings file")
	if bytes.Count(d.text, []byte("{"))+bytes.Count(d.text, []byte("[")) <= maxBrackets {
		if d.root, err = hujson.Parse(d.text); err != nil {
			// The parser requires a line end after a line comment, even at the end of the file.
			text := append(slices.Clone(d.text), '\n')
			if root, wrong := hujson.Parse(text); wrong == nil {
				d.text, d.root, err = text, root, nil
			}
		}
	}
	if err != nil {
		detail := strings.TrimPrefix(err.Error(), "hujson: ")
		return nil, fmt.Errorf("not valid JSON: %s: correct the file, then try again", clip(detail, 160))
	}
	if d.root.Value.Kind() != '{' {
		return nil, d.shapeError("top level", &d.root, '{')
	}
	return d, nil
}

// clip shortens a text from a file for a message.
func clip(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "..."
	}
	return text
}

func (d *document) shapeError(member string, v *hujson.Value, want hujson.Kind) error {
	names := map[hujson.Kind]string{'{': "an object", '[': "an array", '"': "a string", '0': "a number", 'n': "null", 't': "a boolean", 'f': "a boolean"}
	return fmt.Errorf("%s at line %d (byte %d) is %s, want %s: correct the file, then try again",
		member, d.line(v), d.offset(v), names[v.Value.Kind()], names[want])
}

func (d *document) line(v *hujson.Value) int {
	return 1 + bytes.Count(d.text[:d.offset(v)], []byte("\n"))
}

// offset returns where a value of the file begins. It is capped, since an added value has no place in the file.
func (d *document) offset(v *hujson.Value) int { return min(v.StartOffset, len(d.text)) }

// item is a member of an object or an element of an array.
type item struct {
	name   any           // or index
	before *hujson.Extra // white space and comments before it
	value  *hujson.Value
}

// items returns the items of an object or an array, and the text before its closing bracket. Nil has none.
func items(v *hujson.Value) (all []item, after *hujson.Extra) {
	after = new(hujson.Extra)
	if v == nil {
		return nil, after
	}
	switch box := v.Value.(type) {
	case *hujson.Object:
		for i := range box.Members {
			m := &box.Members[i]
			all = append(all, item{m.Name.Value.(hujson.Literal).String(), &m.Name.BeforeExtra, &m.Value})
		}
		after = &box.AfterExtra
	case *hujson.Array:
		for i := range box.Elements {
			e := &box.Elements[i]
			all = append(all, item{i, &e.BeforeExtra, e})
		}
		after = &box.AfterExtra
	}
	return all, after
}

// find returns the index of the item with a name or index, or -1. Of duplicate names the last counts, as in JSON.parse
// and encoding/json.
func find(all []item, step any) int {
	for i, one := range slices.Backward(all) {
		if one.name == step {
			return i
		}
	}
	return -1
}

// at returns the value at a path of names and indices, or nil.
func (d *document) at(path ...any) *hujson.Value {
	if d == nil {
		return nil
	}
	v := &d.root
	for _, step := range path {
		all, _ := items(v)
		i := find(all, step)
		if i < 0 {
			return nil
		}
		v = all[i].value
	}
	return v
}

func (d *document) textAt(path ...any) string {
	text, _ := decode(d.at(path...)).(string)
	return text
}

// checkObject returns an error if a top-level member exists and is not an object.
func (d *document) checkObject(name string) error {
	if v := d.at(name); v != nil && v.Value.Kind() != '{' {
		return d.shapeError(name, v, '{')
	}
	return nil
}

// typed are members that people write, and the kinds of value that Claude Code 2.1.329 accepts there. With any other, even
// null, it loads nothing from the file. It checks more members than these.
var typed = []struct {
	kinds string
	path  []any
}{
	{"{", []any{"permissions"}},
	{"[", []any{"permissions", "allow"}},
	{"[", []any{"permissions", "deny"}},
	{"[", []any{"permissions", "ask"}},
	{"[", []any{"permissions", "additionalDirectories"}},
	{"\"", []any{"permissions", "defaultMode"}},
	{"\"", []any{"model"}},
	{"{", []any{"statusLine"}},
	{"{", []any{"enabledPlugins"}},
	{"tf", []any{disableAll}},
	{"tf", []any{managedOnly}},
	{"0", []any{"cleanupPeriodDays"}},
	{"[n", []any{"hooks", "PreToolUse"}},
}

func (d *document) mistyped() error {
	for _, one := range typed {
		if v := d.at(one.path...); v != nil && !strings.Contains(one.kinds, string(v.Value.Kind())) {
			return d.shapeError(joined(one.path), v, hujson.Kind(one.kinds[0]))
		}
	}
	return nil
}

// decode returns a value as encoding/json does, with numbers as json.Number.
func decode(v *hujson.Value) (value any) {
	if v == nil {
		return nil
	}
	plain := v.Clone()
	plain.Minimize()
	decoder := json.NewDecoder(bytes.NewReader(plain.Pack()))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil // impossible: the parser has accepted it
	}
	return value
}

// same reports whether two files have the same values and the same comments.
func same(a, b []byte) bool {
	x, errX := parse(a)
	y, errY := parse(b)
	return errX == nil && errY == nil && reflect.DeepEqual(decode(&x.root), decode(&y.root)) && bytes.Equal(x.remarks(), y.remarks())
}

// remarks returns the bytes of the comments, where plain JSON has blanks. Trailing commas, which mean nothing, are left
// out.
func (d *document) remarks() (all []byte) {
	plain, err := hujson.Standardize(slices.Clone(d.text))
	if err != nil || len(plain) != len(d.text) {
		return d.text
	}
	for i, c := range d.text {
		if c != plain[i] && c != ',' {
			all = append(all, c)
		}
	}
	return all
}
