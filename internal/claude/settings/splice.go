package settings

import (
	"bytes"
	"strings"
)

// edit replaces cut bytes of the text at an offset.
type edit struct {
	at, cut int
	text    string
}

// splice returns a copy of text with the edits applied, which must be in order and must not overlap.
func splice(text []byte, edits ...edit) []byte {
	var out bytes.Buffer
	from := 0
	for _, e := range edits {
		out.Write(text[from:e.at])
		out.WriteString(e.text)
		from = e.at + e.cut
	}
	out.Write(text[from:])
	return out.Bytes()
}

// insert returns the text with value as b's last item: a member for an object, any other value for an array.
func (d document) insert(b box, value any) []byte {
	l := d.layoutIn(b)
	var entry string
	if m, ok := value.(member); ok {
		entry = l.spellMember(m)
	} else {
		entry = l.spell(value)
	}
	// Comments at the end of b stay after the item that they follow.
	at := b.end - len(b.tail) + len(bytes.TrimRight(b.tail, blanks))
	entry = l.gap(len(b.items) == 0) + entry
	if len(b.items) == 0 {
		return splice(d.text, edit{at: at, text: entry + d.mark(b, l)})
	}
	last := b.items[len(b.items)-1]
	if last.comma {
		return splice(d.text, edit{at: at, text: entry + ","})
	}
	return splice(d.text, edit{at: last.end, text: ","}, edit{at: at, text: entry})
}

// mark returns the white space that distinguishes an empty box that was there from one that we made. It goes between our
// item and what was in the box. A box that we made ends in nothing or in one line end. A mark is recognised only by its
// own bytes and those after it, since the rest of the file may have changed by then.
func (d document) mark(b box, l layout) string {
	rest := string(b.tail[len(bytes.TrimRight(b.tail, blanks)):]) // comments stand before our item
	switch {
	case !l.lines || strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t"):
		return " "
	case rest == "":
		return l.eol + l.eol + d.indentAt(b.open)
	}
	return l.eol + l.eol
}

// marked returns the mark at the start of b's tail, or "". If a comment follows, there is no mark to remove.
func marked(b box) string {
	if len(bytes.Trim(b.tail, blanks)) > 0 {
		return ""
	}
	for _, eol := range []string{"\n", "\r\n"} {
		rest, ok := strings.CutPrefix(string(b.tail), eol+eol)
		switch {
		case !ok:
		case strings.Trim(rest, " \t") == "":
			return string(b.tail)
		case rest[0] == '\n' || rest[0] == '\r':
			return eol + eol
		}
	}
	if bytes.HasPrefix(b.tail, []byte(" ")) {
		return " "
	}
	return ""
}

// place is an item of a box; a path of places leads from the top level to an item.
type place struct {
	box   box
	index int
}

// remove returns the text without the item at the end of path, and without the boxes that were made for it. It returns
// nil if only white space would remain of the whole file.
func (d document) remove(path []place) []byte {
	p := path[len(path)-1]
	if len(p.box.items) > 1 || remains(p) {
		return splice(d.text, d.cut(p)...)
	}
	if len(path) > 1 {
		return d.remove(path[:len(path)-1])
	}
	outside := string(d.root.BeforeExtra) + string(d.root.AfterExtra)
	if strings.Trim(outside, blanks) == "" {
		return nil
	}
	return splice(d.text, edit{at: p.box.open + 1, cut: p.box.end - p.box.open - 1})
}

// remains reports whether a box stays when its only item goes: it was there before the install, or it has a comment.
func remains(p place) bool {
	it := p.box.items[p.index]
	inside := string(it.before) + string(it.after) + string(p.box.tail)
	return marked(p.box) != "" || strings.Trim(inside, blanks) != ""
}

// cut returns the edits that undo insert, whatever was put before and after the item since.
func (d document) cut(p place) []edit {
	it, n := p.box.items[p.index], len(p.box.items)
	kept := bytes.TrimRight(it.before, blanks)
	from := it.start - len(it.before) + len(kept)
	var edits []edit
	if p.index == n-1 && n > 1 && !it.comma {
		edits = append(edits, edit{at: p.box.items[n-2].commaAt(), cut: 1})
	}
	item := edit{at: from, cut: it.end - from}
	extra := 0 // bytes to remove after the item, apart from comments of others before its comma
	if it.comma {
		extra = 1
	}
	if n == 1 {
		extra += len(marked(p.box))
	}
	apart := it.comma && len(it.after) > 0
	if !apart {
		item.cut += extra
	}
	if openLine(kept) && !d.lineEndAt(item.at+item.cut) {
		item.text = d.eol() // without it, the line comment would swallow what follows
	}
	edits = append(edits, item)
	if apart {
		edits = append(edits, edit{at: it.commaAt(), cut: extra})
	}
	return edits
}

// lineEndAt reports whether only white space follows on the line at offset.
func (d document) lineEndAt(offset int) bool {
	return bytes.HasPrefix(bytes.TrimLeft(d.text[offset:], " \t\r"), []byte("\n"))
}

// openLine reports whether extra (white space and comments) ends inside a line comment.
func openLine(extra []byte) bool {
	for rest := string(extra); ; {
		rest = strings.TrimLeft(rest, blanks)
		if rest == "" {
			return false
		}
		end := "*/"
		if strings.HasPrefix(rest, "//") {
			end = "\n"
		}
		_, after, closed := strings.Cut(rest[2:], end)
		if !closed {
			return true
		}
		rest = after
	}
}
