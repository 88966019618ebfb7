package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

func hookHelp(flags *pflag.FlagSet) string {
	var b strings.Builder
	b.WriteString(`heartbeat-stop delivers the next entry of a JSONL inbox after every turn of a
Claude Code session. Without a verb it is the Stop hook: the hook's JSON on
stdin, the decision on stdout (nothing: the stop is approved).

Usage:
  heartbeat-stop --inbox PATH [flags]
  heartbeat-stop VERB [flags]

Example:
  heartbeat-stop install --inbox work/inbox.jsonl --scope project
  heartbeat-stop send --inbox work/inbox.jsonl "summarise the open issues"
  claude "Read CLAUDE.md"

Verbs:
`)
	for _, v := range verbs() {
		fmt.Fprintf(&b, "  %-12s%s\n", v.name, v.short)
	}
	fmt.Fprintf(&b, "\nFlags of the hook:\n%s", flags.FlagUsages())
	b.WriteString(`
Exit status: 0 decided (an error approves the stop, with a sentence on stderr),
1 wrong usage, 128+n ended by signal n while waiting. Never 2.
`)
	return b.String()
}

func (v verb) help(flags *pflag.FlagSet) string {
	usage := strings.TrimSpace("heartbeat-stop " + v.name + " [flags] " + v.args)
	return fmt.Sprintf("%s\n\nUsage:\n  %s\n\nExample:\n%s\n\nFlags:\n%s", v.long, usage, indent(v.example), flags.FlagUsages())
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ")
}
