package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// document is a file, read.
type document struct {
	text   []byte
	values map[string]any
	parts  []part
}

// deepest is how many names of a path are kept, more than any that is looked for: a file may have paths of millions.
const deepest = 4

// part is a header, a key with its value, or a comment on a line of its own.
type part struct {
	kind unstable.Kind
	// path is the path of a header or a key, with that of its table.
	path []string
	span // of a header's keys, a key with its value, or a comment
	// switches are the booleans in a value.
	switches []boolean
	comment  string
}

func (p part) isHeader() bool { return p.kind == unstable.Table || p.kind == unstable.ArrayTable }

// isWithin reports whether a path is the part's, or begins it.
func (p part) isWithin(path ...string) bool {
	return len(p.path) >= len(path) && slices.Equal(p.path[:len(path)], path)
}

// span is a range of the text, in bytes.
type span struct{ start, end int }

// boolean is a boolean and its path.
type boolean struct {
	path []string
	span
}

func parse(text []byte) (document, error) {
	d := document{text: text}
	if err := toml.Unmarshal(text, &d.values); err != nil {
		return d, syntaxError(err)
	}
	p := unstable.Parser{KeepComments: true}
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		one := part{kind: e.Kind}
		switch e.Kind {
		case unstable.Comment:
			one.span, one.comment = spanOf(e.Raw), string(e.Data)
		case unstable.Table, unstable.ArrayTable:
			table = keys(e)
			one.path, one.span = table, spanOfKeys(e)
		case unstable.KeyValue:
			one.path, one.span = join(table, keys(e)), spanOf(e.Raw)
			one.switches = switches(one.path, e.Value())
		}
		d.parts = append(d.parts, one)
	}
	return d, syntaxError(p.Error())
}

func syntaxError(err error) error {
	if err == nil {
		return nil
	}
	at := ""
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		line, column := decode.Position()
		at = fmt.Sprintf(" at line %d, column %d", line, column)
	}
	return fmt.Errorf("not valid TOML%s: %s: correct the file, then try again", at, strings.TrimPrefix(err.Error(), "toml: "))
}

func spanOf(r unstable.Range) span { return span{int(r.Offset), int(r.Offset + r.Length)} }

func keys(e *unstable.Node) (path []string) {
	for it := e.Key(); it.Next() && len(path) < deepest; {
		path = append(path, string(it.Node().Data))
	}
	return path
}

func join(table, key []string) []string {
	all := slices.Concat(table, key)
	return all[:min(len(all), deepest)]
}

// spanOfKeys is the range of a header, without its brackets.
func spanOfKeys(e *unstable.Node) span {
	it := e.Key()
	it.Next()
	all := spanOf(it.Node().Raw)
	for it.Next() {
		all.end = spanOf(it.Node().Raw).end
	}
	return all
}

// switches are the booleans at path: the value itself, or those in its inline tables.
func switches(path []string, value *unstable.Node) (all []boolean) {
	switch value.Kind {
	case unstable.Bool:
		return []boolean{{path, spanOf(value.Raw)}}
	case unstable.InlineTable:
		for it := value.Children(); it.Next(); {
			if child := it.Node(); child.Kind == unstable.KeyValue {
				all = append(all, switches(join(path, keys(child)), child.Value())...)
			}
		}
	}
	return all
}

// lineOf is the line that an offset is in, with its end.
func (d document) lineOf(offset int) span {
	start := bytes.LastIndexByte(d.text[:offset], '\n') + 1
	if end := bytes.IndexByte(d.text[offset:], '\n'); end >= 0 {
		return span{start, offset + end + 1}
	}
	return span{start, len(d.text)}
}

// lines are the lines that a range is in, with their ends.
func (d document) lines(s span) span { return span{d.lineOf(s.start).start, d.lineOf(s.end).end} }

// number is the line of an offset, from 1 on.
func (d document) number(offset int) int { return 1 + bytes.Count(d.text[:offset], []byte("\n")) }

// table is the index of the header of a table, -1 if it has none.
func (d document) table(path ...string) int {
	return slices.IndexFunc(d.parts, func(p part) bool { return p.kind == unstable.Table && slices.Equal(p.path, path) })
}

// body is the range of the table of a header: its line, and those up to its last key.
func (d document) body(header int) span {
	body := d.lines(d.parts[header].span)
	if all := d.keyed(header); len(all) > 0 {
		body.end = d.lines(all[len(all)-1].span).end
	}
	return body
}

// keyed are the keys of the table of a header.
func (d document) keyed(header int) (all []part) {
	for _, p := range d.parts[header+1:] {
		if p.isHeader() {
			break
		}
		if p.kind == unstable.KeyValue {
			all = append(all, p)
		}
	}
	return all
}
