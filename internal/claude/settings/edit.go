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

// unit is a step of indentation.
const unit = "  "

// edited returns the edited file, or the given file itself if nothing changed.
func (d *document) edited(file []byte) []byte {
	text := d.root.Pack()
	switch {
	case bytes.Equal(d.text, text):
		return file
	case d.marked:
		return slices.Concat(byteOrderMark, text)
	}
	return text
}

// put sets the value at a path, and makes missing objects and arrays on the way.
func (d *document) put(value any, path ...any) error {
	last := len(path) - 1
	kind, empty := hujson.Kind('{'), any(map[string]any{})
	if _, isIndex := path[last].(int); isIndex {
		kind, empty = '[', []any{}
	}
	if d.at(path[:last]...) == nil {
		if err := d.put(empty, path[:last]...); err != nil {
			return err
		}
	}
	in := d.at(path[:last]...)
	if in.Value.Kind() != kind {
		return d.shapeError(joined(path[:last]), in, kind)
	}
	all, _ := items(in)
	i := find(all, path[last])
	if i < 0 {
		add(value, in, path...)
		return nil
	}
	have := all[i].value
	if now := spell(value, len(path)); !reflect.DeepEqual(decode(have), decode(&now)) {
		have.Value = now.Value
	}
	return nil
}

type member struct {
	name  string
	value any
}

func (d *document) putAll(members []member, path ...any) error {
	for _, m := range members {
		if err := d.put(m.value, slices.Concat(path, []any{m.name})...); err != nil {
			return err
		}
	}
	return nil
}

func joined(path []any) string {
	var b strings.Builder
	for _, step := range path {
		if i, isIndex := step.(int); isIndex {
			fmt.Fprintf(&b, "[%d]", i)
		} else {
			fmt.Fprintf(&b, ".%s", step)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

// spell returns a value in the layout of that depth in a file.
func spell(value any, depth int) hujson.Value {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent(strings.Repeat(unit, depth), unit)
	err := e.Encode(value)
	v, wrong := hujson.Parse(bytes.TrimSpace(text.Bytes()))
	if err = errors.Join(err, wrong); err != nil {
		panic(err) // impossible for strings, numbers and booleans
	}
	return v
}

// add puts an item after the others, on a line of its own. Comments at the end stay after the item that they follow.
func add(value any, in *hujson.Value, path ...any) {
	all, after := items(in)
	line := "\n" + strings.Repeat(unit, len(path)-1)
	remarks := bytes.TrimRight(*after, blanks)
	before := slices.Concat(remarks, []byte(line+unit))
	if *after = (*after)[len(remarks):]; len(all) == 0 {
		*after = hujson.Extra(line)
	}
	v := spell(value, len(path))
	switch box := in.Value.(type) {
	case *hujson.Object:
		v.BeforeExtra = hujson.Extra(" ")
		name := hujson.Value{BeforeExtra: before, Value: hujson.String(path[len(path)-1].(string))}
		box.Members = append(box.Members, hujson.ObjectMember{Name: name, Value: v})
	case *hujson.Array:
		v.BeforeExtra = before
		box.Elements = append(box.Elements, v)
	}
}

// drop removes the value at a path, and the objects and arrays that this leaves empty, unless they existed before.
func (d *document) drop(before *document, path ...any) {
	last := len(path) - 1
	in := d.at(path[:last]...)
	all, _ := items(in)
	cut(in, find(all, path[last]))
	all, after := items(in)
	switch {
	case len(all) > 0 || len(bytes.Trim(*after, blanks)) > 0:
	case last > 0 && before.at(path[:last]...) == nil:
		d.drop(before, path[:last]...)
	default:
		*after = nil
	}
}

// cut removes an item. Comments before and after it stay.
func cut(in *hujson.Value, i int) {
	all, next := items(in)
	gone := slices.Concat(*all[i].before, all[i].value.AfterExtra)
	if i < len(all)-1 {
		next = all[i+1].before
	} else if i > 0 { // the comma before it would be a trailing one
		last := all[i-1].value
		gone, last.AfterExtra = slices.Concat(last.AfterExtra, gone), nil
	}
	if len(bytes.Trim(gone, blanks)) > 0 {
		*next = slices.Concat(gone, *next)
	}
	switch box := in.Value.(type) {
	case *hujson.Object:
		box.Members = slices.Delete(box.Members, i, i+1)
	case *hujson.Array:
		box.Elements = slices.Delete(box.Elements, i, i+1)
	}
}
