package program

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// manualName returns the name of a command's page for man(1), such as heartbeat-send.
func manualName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// roff returns the manual page of a command. cobra's own Markdown library costs a fifteenth of every start.
func (p Program) roff(c *cobra.Command) string {
	page, r := p.page(c), &roff{}
	fmt.Fprintf(r, ".TH \"%s\" 1 \"\" heartbeat\n", escape(strings.ToUpper(manualName(c))))
	r.WriteString(".nh\n") // a hyphenated word cannot be copied
	r.section("NAME")
	r.text(manualName(c) + " - " + c.Short)
	r.section("SYNOPSIS")
	for i, u := range page.Usage {
		if i > 0 {
			r.WriteString(".br\n")
		}
		fmt.Fprintf(r, "%s %s\n", bold(page.Command), escape(u))
	}
	r.section("DESCRIPTION")
	r.prose(page.Long)
	if page.Flags.HasFlags() {
		r.section("FLAGS")
	}
	page.Flags.VisitAll(func(f *pflag.Flag) {
		if tag, text := cli.DescribeFlag(f); !f.Hidden {
			r.item(bold(tag), text)
		}
	})
	for _, g := range page.Verbs {
		r.section(strings.ToUpper(g.Title))
		for _, v := range g.Items {
			r.item(bold(v.Name), v.What)
		}
	}
	r.section("EXIT STATUS")
	r.prose(page.Status)
	r.section("EXAMPLES")
	r.literal(page.Example)
	r.section("SEE ALSO")
	also := c.Commands()
	if c.HasParent() {
		also = append([]*cobra.Command{c.Parent()}, also...)
	}
	for i, other := range also {
		comma := ","
		if i == len(also)-1 {
			comma = ""
		}
		fmt.Fprintf(r, "%s(1)%s\n", bold(manualName(other)), comma)
	}
	return r.String()
}

// roff builds a manual page from the macros of man(7). It writes no date, so that the page depends only on the command.
type roff struct{ strings.Builder }

func (r *roff) section(title string) { fmt.Fprintf(r, ".SH %s\n", title) }

// item adds a list entry. The tag is already escaped and has its fonts.
func (r *roff) item(tag, text string) {
	fmt.Fprintf(r, ".TP\n%s\n", tag)
	r.text(text)
}

// prose adds paragraphs. A paragraph with tabs or indented lines was laid out by hand and is kept literally.
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
			line = `\&` + line // otherwise roff reads the line as a request
		}
		r.WriteString(line + "\n")
	}
}

func bold(s string) string { return `\fB` + escape(s) + `\fR` }

// spellings are how roff is told to print what it reads otherwise.
var spellings = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "'", `\(aq`, `"`, `\(dq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// escape makes roff print the text unchanged. Quotes and hyphens must not become typographic,
// because readers copy flags and commands into a shell.
func escape(s string) string {
	var b strings.Builder
	for _, c := range spellings.Replace(s) {
		if c > '~' {
			fmt.Fprintf(&b, `\[u%04X]`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}
