package config

import (
	"bytes"
	"slices"
)

// replaced is the text with another one in place of a range.
func (d document) replaced(s span, with string) []byte {
	return slices.Concat(d.text[:s.start], []byte(with), d.text[s.end:])
}

// appended is the text with a block of lines behind it, and an empty line between. A text whose last line has no end gets
// a block whose last line has none: that tells [document.dropped] what to take back.
func (d document) appended(block string) []byte {
	switch {
	case len(d.text) == 0:
		return []byte(block + "\n")
	case d.text[len(d.text)-1] == '\n':
		return slices.Concat(d.text, []byte("\n"+block+"\n"))
	}
	return slices.Concat(d.text, []byte("\n\n"+block))
}

// below is the text with another line behind that of a header.
func (d document) below(header int, line string) []byte {
	end := d.lines(d.parts[header].span).end
	if end == len(d.text) && !bytes.HasSuffix(d.text, []byte("\n")) {
		return slices.Concat(d.text, []byte("\n"+line))
	}
	return d.replaced(span{end, end}, line+"\n")
}

// dropped is the text without some of its lines, and without what came with them: the end of the line before, if they have
// none, and an empty line, if they were appended as a block.
func (d document) dropped(lines span, block bool) []byte {
	before := d.text[:lines.start]
	came := ""
	if !bytes.HasSuffix(d.text[:lines.end], []byte("\n")) {
		came = "\n"
	}
	if block && (bytes.HasSuffix(before, []byte("\n\n")) || string(before) == "\n") {
		came += "\n"
	}
	lines.start -= len(came)
	if left := d.replaced(span{max(0, lines.start), lines.end}, ""); len(left) > 0 {
		return left
	}
	return nil
}
