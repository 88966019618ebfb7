package settings

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"
)

// layout is how new text is formatted at one place of a file.
type layout struct {
	eol    string // "\n" or "\r\n"
	unit   string // one step of indentation
	colon  string // after a name
	comma  string // between items on one line
	lines  bool   // each item is on a line of its own
	indent string // before an item on a line of its own
}

// layoutIn returns how a new item of b is formatted.
func (d document) layoutIn(b box) layout {
	l := layout{eol: d.eol(), unit: d.unit(), colon: ": ", comma: ", ", lines: d.hasLines(b)}
	if top := d.top(); len(top.items) > 0 && len(top.items[0].value.BeforeExtra) == 0 {
		l.colon, l.comma = ":", ","
	}
	l.indent = d.indentAt(b.open) + l.unit
	if n := len(b.items); n > 0 {
		if own, ok := lineIndent(b.items[n-1].before); ok {
			l.indent = own
		}
	}
	return l
}

// hasLines reports whether items of b are on lines of their own. An empty box follows the top level.
func (d document) hasLines(b box) bool {
	if bytes.Contains(b.tail, []byte("\n")) {
		return true
	}
	if n := len(b.items); n > 0 {
		return bytes.Contains(b.items[n-1].before, []byte("\n"))
	}
	top := d.top()
	return len(top.items) == 0 || d.hasLines(top)
}

// eol returns the line end of the file's first line.
func (d document) eol() string {
	i := bytes.IndexByte(d.text, '\n')
	if i > 0 && d.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// unit returns one step of indentation: by how much the first member is indented more than the top level, or two spaces.
func (d document) unit() string {
	if top := d.top(); len(top.items) > 0 {
		if indent, ok := lineIndent(top.items[0].before); ok {
			return strings.TrimPrefix(indent, d.indentAt(top.open))
		}
	}
	return "  "
}

// indentAt returns the indentation of the line at offset.
func (d document) indentAt(offset int) string {
	line := d.text[bytes.LastIndexByte(d.text[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// lineIndent returns the indentation after the last line end in extra, and whether extra has a line end.
func lineIndent(extra []byte) (string, bool) {
	i := bytes.LastIndexByte(extra, '\n')
	line := extra[i+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))]), i >= 0
}

// gap returns the white space before an item; first says that no item precedes it.
func (l layout) gap(first bool) string {
	switch {
	case l.lines:
		return l.eol + l.indent
	case first:
		return ""
	}
	return strings.TrimPrefix(l.comma, ",")
}

// member is a member of an object that is to be written.
type member struct {
	name  string
	value any
}

// spell returns value as JSON: a string, int, bool, rawJSON, []member (an object) or []any (an array), the last two not empty.
func (l layout) spell(value any) string {
	switch value := value.(type) {
	case string:
		return string(hujson.String(value))
	case int:
		return string(hujson.Int(int64(value)))
	case bool:
		return string(hujson.Bool(value))
	case rawJSON:
		return string(value)
	case []member:
		return l.bracketed("{", "}", len(value), func(in layout, i int) string { return in.spellMember(value[i]) })
	case []any:
		return l.bracketed("[", "]", len(value), func(in layout, i int) string { return in.spell(value[i]) })
	}
	panic("value of a type that is never spelled")
}

func (l layout) spellMember(m member) string {
	return l.spell(m.name) + l.colon + l.spell(m.value)
}

// bracketed joins n items between brackets, one step further in.
func (l layout) bracketed(open, end string, n int, item func(in layout, i int) string) string {
	inner := l
	inner.indent += l.unit
	var b strings.Builder
	b.WriteString(open)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(inner.gap(i == 0) + item(inner, i))
	}
	if l.lines {
		b.WriteString(l.eol + l.indent)
	}
	b.WriteString(end)
	return b.String()
}
