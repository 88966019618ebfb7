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

// edited returns the edited file, or the given file itself if nothing changed.
func (d *document) edited(file []byte) []byte {
	text := d.root.Pack()
	if !bytes.HasSuffix(d.text, []byte("\n")) { // see parseValue
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	switch {
	case bytes.Equal(d.text, text):
		return file
	case d.marked:
		return slices.Concat(byteOrderMark, text)
	}
	return text
}

// put sets the value at a path, and creates missing objects and arrays on the way.
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
		d.add(value, in, path...)
		return nil
	}
	have := all[i].value
	indent, lines := indentation(*all[i].before)
	if now := d.spell(value, lines, indent); !reflect.DeepEqual(decode(have), decode(&now)) {
		have.Value = now.Value
	}
	return nil
}

type member struct {
	name  string
	value any
}

// putAll sets members of one object.
func (d *document) putAll(members []member, path ...any) error {
	for _, m := range members {
		if err := d.put(m.value, slices.Concat(path, []any{m.name})...); err != nil {
			return err
		}
	}
	return nil
}

// joined formats a path for messages.
func joined(path []any) string {
	var b strings.Builder
	for _, step := range path {
		if i, isIndex := step.(int); isIndex {
			fmt.Fprintf(&b, "[%d]", i)
			continue
		}
		fmt.Fprintf(&b, ".%s", step)
	}
	return strings.TrimPrefix(b.String(), ".")
}

// indentation returns the blanks at the start of the last line of extra, and whether extra has a line end.
func indentation(extra []byte) (string, bool) {
	i := bytes.LastIndexByte(extra, '\n')
	line := extra[i+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))]), i >= 0
}

// spell returns a value in the file's layout, on several lines or on one.
func (d *document) spell(value any, lines bool, indent string) hujson.Value {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if lines {
		e.SetIndent(indent, d.unit)
	}
	err := e.Encode(value)
	v, wrong := hujson.Parse(bytes.ReplaceAll(bytes.TrimSpace(text.Bytes()), []byte("\n"), []byte(d.eol)))
	if err = errors.Join(err, wrong); err != nil {
		panic(err) // impossible for strings, numbers and booleans
	}
	return v
}

// add puts an item after the others. Comments at the end stay after the item that they follow.
func (d *document) add(value any, in *hujson.Value, path ...any) {
	all, after := items(in)
	lines, indent := d.lines, strings.Repeat(d.unit, len(path))
	var trailing hujson.Extra // not nil if the last item has a trailing comma
	remarks := slices.Clone(bytes.TrimRight(*after, blanks))
	rest := (*after)[len(remarks):]
	if n := len(all); n > 0 {
		indent, lines = indentation(*all[n-1].before)
		if all[n-1].value.AfterExtra != nil {
			trailing = hujson.Extra{}
		}
	} else if rest = nil; lines {
		rest = hujson.Extra(d.eol + strings.Repeat(d.unit, len(path)-1))
	}
	if lines || !hujson.Extra(remarks).IsValid() {
		remarks = append(remarks, d.eol+indent...)
	} else if len(all) > 0 {
		remarks = append(remarks, d.space...)
	}
	v := d.spell(value, lines, indent)
	v.AfterExtra = trailing
	switch box := in.Value.(type) {
	case *hujson.Object:
		v.BeforeExtra = hujson.Extra(d.space)
		name := hujson.Value{BeforeExtra: remarks, Value: hujson.String(path[len(path)-1].(string))}
		box.Members = append(box.Members, hujson.ObjectMember{Name: name, Value: v})
	case *hujson.Array:
		v.BeforeExtra = remarks
		box.Elements = append(box.Elements, v)
	}
	*after = rest
}

// drop removes the value at a path, and the objects and arrays that this leaves empty, unless they existed before.
func (d *document) drop(before *document, path ...any) {
	last := len(path) - 1
	in := d.at(path[:last]...)
	all, _ := items(in)
	cut(in, find(all, path[last]), d.eol)
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
func cut(in *hujson.Value, i int, eol string) {
	all, after := items(in)
	one, isLast := all[i], i == len(all)-1
	remarks := slices.Concat(*one.before, one.value.AfterExtra)
	if isLast && i > 0 {
		// The comma before it is now the last one. It stays only if a person had written a trailing comma.
		if comma := &all[i-1].value.AfterExtra; one.value.AfterExtra == nil {
			remarks, *comma = slices.Concat(*comma, remarks), nil
		} else if *comma == nil {
			*comma = hujson.Extra{}
		}
	}
	next := after
	if !isLast {
		next = all[i+1].before
	}
	if remarks = bytes.TrimRight(remarks, blanks); !hujson.Extra(remarks).IsValid() {
		remarks = append(remarks, eol...)
		*next = bytes.TrimPrefix(bytes.TrimLeft(*next, " \t\r"), []byte("\n"))
	}
	*next = append(remarks, *next...)
	switch box := in.Value.(type) {
	case *hujson.Object:
		box.Members = slices.Delete(box.Members, i, i+1)
	case *hujson.Array:
		box.Elements = slices.Delete(box.Elements, i, i+1)
	}
}
