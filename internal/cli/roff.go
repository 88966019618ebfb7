package cli

import (
	"fmt"
	"strings"
)

// roff is a manual page in the making, in the macros of man(7). There is no date
// in it: a page depends on nothing but the command that prints it.
type roff struct{ strings.Builder }

func (r *roff) title(name string) {
	r.request("TH", `"`+escape(strings.ToUpper(name))+`" 1 "" heartbeat`)
	r.WriteString(".nh\n") // a word that is split cannot be copied
}

func (r *roff) section(title string) { r.request("SH", title) }

func (r *roff) request(name, args string) { fmt.Fprintf(r, ".%s %s\n", name, args) }

// item is an entry of a list; the tag has its fonts already.
func (r *roff) item(tag, text string) {
	fmt.Fprintf(r, ".TP\n%s\n", tag)
	r.text(text)
}

// prose is paragraphs. One that is laid out by hand, with blanks at the start of
// a line, stays so.
func (r *roff) prose(s string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(s), "\n\n") {
		if i > 0 {
			r.WriteString(".PP\n")
		}
		if strings.Contains("\n"+paragraph, "\n ") || strings.Contains(paragraph, "\t") {
			r.literal(paragraph)
			continue
		}
		r.text(paragraph)
	}
}

func (r *roff) literal(s string) {
	r.WriteString(".EX\n")
	r.text(s)
	r.WriteString(".EE\n")
}

func (r *roff) text(s string) {
	for line := range strings.Lines(s) {
		line = escape(strings.TrimRight(line, " \t\n"))
		if strings.HasPrefix(line, ".") {
			line = `\&` + line // or it would be a request
		}
		r.WriteString(line + "\n")
	}
}

func bold(s string) string   { return `\fB` + escape(s) + `\fR` }
func italic(s string) string { return `\fI` + escape(s) + `\fR` }

// escape has roff print what stands there. Quotes and hyphens too, which it would
// make typographic ones: readers copy flags and commands into a shell.
func escape(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == '\\':
			b.WriteString(`\(rs`)
		case c == '-':
			b.WriteString(`\-`)
		case c == '\'':
			b.WriteString(`\(aq`)
		case c == '"':
			b.WriteString(`\(dq`)
		case c == '`':
			b.WriteString(`\(ga`)
		case c == '^':
			b.WriteString(`\(ha`)
		case c == '~':
			b.WriteString(`\(ti`)
		case c > '~':
			fmt.Fprintf(&b, `\[u%04X]`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
