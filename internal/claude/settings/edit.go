package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// edited returns the file as it is now, and the very file if nothing was changed.
func (d *document) edited(file []byte) ([]byte, error) {
	switch {
	case d.broken != nil:
		return nil, d.broken
	case bytes.Equal(bytes.TrimPrefix(file, byteOrderMark), d.text) || len(file) == 0 && string(d.text) == "{}\n":
		return file, nil
	case d.marked:
		return slices.Concat(byteOrderMark, d.text), nil
	}
	return d.text, nil
}

// splice puts text into the place of what is there from one offset to another one.
func (d *document) splice(from, to int, text string) {
	after := slices.Concat(d.text[:from], []byte(text), d.text[to:])
	root, err := parseValue(after)
	if d.broken == nil {
		d.broken = err
	}
	if err == nil {
		d.text, d.root = after, root
		d.moved = append(d.moved, [2]int{from + len(text), len(text) - (to - from)})
	}
}

// put sets what is at a path, and makes the objects and arrays on the way that are missing.
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
	if in == nil || in.Value.Kind() != kind {
		if in == nil {
			return d.broken
		}
		return d.shapeError(joined(path[:last]), in, kind)
	}
	all, _ := items(in)
	i := find(all, path[last])
	if i < 0 {
		d.add(value, in, path...)
		return nil
	}
	have := all[i].value
	indent, lines := indentation(all[i].before)
	text := d.spell(value, lines, indent)
	if now, err := hujson.Parse([]byte(text)); err != nil || !reflect.DeepEqual(decode(have), decode(&now)) {
		d.splice(have.StartOffset, have.EndOffset, text)
	}
	return nil
}

// member is a member of an object.
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

// joined is a path as messages name it.
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

// indentation is what a line begins with, and whether extra has a line end.
func indentation(extra []byte) (string, bool) {
	i := bytes.LastIndexByte(extra, '\n')
	line := extra[i+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))]), i >= 0
}

// spell returns a value as it is written into the file, on lines of its own or on one.
func (d *document) spell(value any, lines bool, indent string) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if lines {
		e.SetIndent(indent, d.unit)
	}
	if err := e.Encode(value); err != nil {
		panic(err) // of strings, numbers and booleans
	}
	return strings.ReplaceAll(strings.TrimSpace(text.String()), "\n", d.eol)
}

// add puts an item behind the others. Comments at the end stay after the item that they follow.
func (d *document) add(value any, in *hujson.Value, path ...any) {
	all, after := items(in)
	lines, indent, gap, comma := d.lines, strings.Repeat(d.unit, len(path)), "", ""
	remarks := bytes.TrimRight(after, blanks)
	to := in.EndOffset - len("}")
	from, rest := to-len(after)+len(remarks), ""
	before := ""
	if n := len(all); n > 0 {
		indent, lines = indentation(all[n-1].before)
		gap, to = d.space, from
		if last := all[n-1].value; last.AfterExtra != nil {
			comma = ","
		} else {
			before = "," + string(d.text[last.EndOffset:from])
			from = last.EndOffset
		}
	} else if lines {
		rest = d.eol + strings.Repeat(d.unit, len(path)-1)
	}
	if lines || !hujson.Extra(remarks).IsValid() {
		gap = d.eol + indent
	}
	if name, isName := path[len(path)-1].(string); isName {
		gap += d.spell(name, false, "") + ":" + d.space
	}
	d.splice(from, to, before+gap+d.spell(value, lines, indent)+comma+rest)
}

// drop removes what is at a path, and the objects and arrays around it that are empty then, unless they were there before.
func (d *document) drop(before *document, path ...any) {
	last := len(path) - 1
	d.cut(path...)
	in := d.at(path[:last]...)
	all, after := items(in)
	switch {
	case len(all) > 0 || len(bytes.Trim(after, blanks)) > 0 || d.broken != nil:
	case last > 0 && before.at(path[:last]...) == nil:
		d.drop(before, path[:last]...)
	default:
		d.splice(in.StartOffset+len("{"), in.EndOffset-len("}"), "")
	}
}

// cut removes an item. Comments before and after it stay.
func (d *document) cut(path ...any) {
	all, _ := items(d.at(path[:len(path)-1]...))
	i := find(all, path[len(path)-1])
	one := all[i]
	from, to := one.from-len(one.before), one.value.EndOffset+len(one.value.AfterExtra)
	remarks := slices.Concat(one.before, one.value.AfterExtra)
	if one.value.AfterExtra != nil || i < len(all)-1 {
		to += len(",")
	} else if i > 0 { // or plain JSON would get a trailing comma
		from = all[i-1].value.EndOffset
		remarks = slices.Concat(all[i-1].value.AfterExtra, remarks)
	}
	if remarks = bytes.TrimRight(remarks, blanks); !hujson.Extra(remarks).IsValid() {
		remarks = append(remarks, d.eol...)
		to += len(d.text[to:]) - len(bytes.TrimLeft(d.text[to:], " \t\r"))
		if d.text[to] == '\n' {
			to++
		}
	}
	d.splice(from, to, string(remarks))
}
