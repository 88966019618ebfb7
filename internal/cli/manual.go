package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// ManualName is the page's name for man(1): heartbeat-send.
func (p Page) ManualName() string { return ManualName(p.Command) }

// ManualName is the name for man(1) of the page of a command and its verb.
func ManualName(command string) string { return strings.ReplaceAll(command, " ", "-") }

// Manual returns the page in roff, for man(1).
func (p Page) Manual() string {
	r := &roff{}
	r.title(p.ManualName())
	r.section("NAME")
	r.text(p.ManualName() + " - " + p.Short)
	p.synopsis(r)
	r.section("DESCRIPTION")
	r.prose(p.Long)
	if p.Flags != nil {
		r.section("FLAGS")
		p.Flags.VisitAll(func(f *pflag.Flag) { r.item(flagTag(f, bold, italic), flagText(f)) })
	}
	p.verbs(r)
	r.section("EXIT STATUS")
	r.prose(p.Status)
	p.list(r, "ENVIRONMENT", "", p.Environment)
	p.list(r, "FILES", p.FilesIntro, p.Files)
	r.section("EXAMPLES")
	r.literal(p.Example)
	p.seeAlso(r)
	return r.String()
}

func (p Page) synopsis(r *roff) {
	r.section("SYNOPSIS")
	for i, u := range p.Usage {
		if i > 0 {
			r.WriteString(".br\n")
		}
		fmt.Fprintf(r, "%s %s\n", bold(p.Command), escape(u))
	}
}

func (p Page) verbs(r *roff) {
	if len(p.Verbs) > 0 {
		r.section("VERBS")
	}
	for _, g := range p.Verbs {
		if len(p.Verbs) > 1 {
			r.request("SS", escape(g.Title))
		}
		for _, v := range g.Items {
			r.item(bold(v.Name), v.What)
		}
	}
}

func (p Page) list(r *roff, title, intro string, items []Item) {
	if len(items) == 0 {
		return
	}
	r.section(title)
	if intro != "" {
		r.text(intro)
	}
	for _, i := range items {
		r.item(bold(i.Name), i.What)
	}
}

func (p Page) seeAlso(r *roff) {
	r.section("SEE ALSO")
	for i, name := range p.SeeAlso {
		comma := ","
		if i == len(p.SeeAlso)-1 {
			comma = ""
		}
		fmt.Fprintf(r, "%s(1)%s\n", bold(name), comma)
	}
}
