package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// flagColumn is the column in which the texts of flags begin.
const flagColumn = 28

// flagHelp lists the flags. A tag that reaches into the column of texts gets a line of
// its own.
func flagHelp(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		tag := "  " + flagTag(f, func(s string) string { return s }, func(s string) string { return s })
		if len(tag)+2 > flagColumn {
			b.WriteString(tag + "\n")
			tag = ""
		}
		for _, line := range wrap(flagText(f), helpWidth-flagColumn) {
			fmt.Fprintf(&b, "%-*s%s\n", flagColumn, tag, line)
			tag = ""
		}
	})
	return b.String()
}

// flagTag shows how a flag is typed; name and value style its parts.
func flagTag(f *pflag.Flag, name, value func(string) string) string {
	tag := name("--" + f.Name)
	if f.Shorthand != "" {
		tag = name("-"+f.Shorthand) + ", " + tag
	}
	if v, _ := pflag.UnquoteUsage(f); v != "" {
		tag += " " + value(v)
	}
	return tag
}

// flagText returns a flag's text, with its default unless that says nothing.
func flagText(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return text
	}
	return fmt.Sprintf("%s (default %s)", text, f.DefValue)
}
