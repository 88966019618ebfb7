package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// manualName is what man(1) calls the page: heartbeat-stop-send.
func (p page) manualName() string { return strings.ReplaceAll(p.command, " ", "-") }

// manual is the page for man(1).
func (p page) manual() string {
	r := &roff{}
	r.title(p.manualName())
	r.section("NAME")
	r.text(p.manualName() + " - " + p.short)
	p.synopsis(r)
	r.section("DESCRIPTION")
	r.prose(p.long)
	r.section("FLAGS")
	p.flags.VisitAll(func(f *pflag.Flag) { r.item(flagTag(f), flagText(f)) })
	if len(p.verbs) > 0 {
		r.section("VERBS")
	}
	for _, v := range p.verbs {
		r.item(bold(v.name), v.short)
	}
	r.section("EXIT STATUS")
	r.prose(p.status)
	p.environment(r)
	p.listFiles(r)
	r.section("EXAMPLES")
	r.literal(p.example)
	p.seeAlso(r)
	return r.String()
}

func (p page) synopsis(r *roff) {
	r.section("SYNOPSIS")
	for i, u := range p.usage {
		if i > 0 {
			r.WriteString(".br\n")
		}
		fmt.Fprintf(r, "%s %s\n", bold(p.command), escape(u))
	}
}

func flagTag(f *pflag.Flag) string {
	tag := bold("--" + f.Name)
	if f.Shorthand != "" {
		tag = bold("-"+f.Shorthand) + ", " + tag
	}
	if value, _ := pflag.UnquoteUsage(f); value != "" {
		tag += " " + italic(value)
	}
	return tag
}

func flagText(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "0", "false", "[]": // says nothing, and the help leaves it out as well
		return text
	}
	return fmt.Sprintf("%s (default %s)", text, f.DefValue)
}

func (p page) environment(r *roff) {
	if p.flags.Lookup("inbox") == nil {
		return
	}
	r.section("ENVIRONMENT")
	r.item(bold(inboxVariable), "the inbox, where --inbox does not name one")
}

func (p page) listFiles(r *roff) {
	if len(p.files) == 0 {
		return
	}
	r.section("FILES")
	r.text("All beside the inbox, readable by you alone. Each inbox needs a directory of its own.")
	for _, f := range p.files {
		r.item(bold(f.name), f.what)
	}
}

// seeAlso leads from the command to its verbs, and from a verb to the command.
func (p page) seeAlso(r *roff) {
	names := []string{commandName}
	if len(p.verbs) > 0 {
		names = nil
	}
	for _, v := range p.verbs {
		names = append(names, v.page(nil).manualName())
	}
	r.section("SEE ALSO")
	for i, name := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(r, "%s(1)%s\n", bold(name), comma)
	}
}
