package program

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

const maxHint = 60 // how many columns of a hint a shell shows

// complete registers what a shell offers for a verb's arguments and flags.
func (p Program) complete(c *cobra.Command, v cli.Verb) {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if v.IDs != "" && p.IDs != nil {
			return offered(p.IDs(v.IDs, c.Flags()), args), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		offers := cobra.NoFileCompletions
		if choices := cli.Choices(f); choices != nil {
			offers = cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder)
		}
		takes, _ := pflag.UnquoteUsage(f) // the name of its value in the help
		isFile := slices.Contains([]string{"path", "file", "directory", "module", "command"}, takes)
		if f.NoOptDefVal == "" && !isFile {
			_ = c.RegisterFlagCompletionFunc(f.Name, offers) // fails only for an unknown flag
		}
	})
}

// offered leaves out ids that cannot be typed and ids that are already on the line.
func offered(hints []Hint, args []string) (all []cobra.Completion) {
	seen := map[string]bool{}
	for _, h := range hints {
		if h.ID == "" || seen[h.ID] || slices.Contains(args, h.ID) || strings.ContainsFunc(h.ID, unprintable) {
			continue
		}
		seen[h.ID] = true
		if what := Excerpt(h.What, maxHint); what != "" {
			h.ID += "\t" + what
		}
		all = append(all, h.ID)
	}
	return all
}

// completeBeside has another heartbeat command complete the line.
func completeBeside(name string, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	path, err := cli.Beside(name)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	output, err := exec.Command(path, slices.Concat([]string{cobra.ShellCompRequestCmd}, args, []string{word})...).Output()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	lines := strings.Split(string(bytes.TrimSpace(output)), "\n")
	last := lines[len(lines)-1]
	directive := cobra.ShellCompDirectiveNoFileComp
	if last == ":0" {
		directive = cobra.ShellCompDirectiveDefault
	}
	return lines[:len(lines)-1], directive
}

// Excerpt returns the beginning of a text's first line, of at most that many characters and without control characters.
func Excerpt(s string, most int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	runes := []rune(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || unprintable(r) }), " "))
	if len(runes) > most {
		return string(runes[:most-3]) + "..."
	}
	return string(runes)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
