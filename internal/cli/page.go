package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Page describes a command or one of its verbs. The help and the manual page are made from it.
type Page struct {
	Command     string // as typed: heartbeat-stop, heartbeat send
	Brief       string // shown by --help instead of Long where --help-all exists
	Long        string
	Usage       []string // what follows the command, one line for each way to call it
	Example     string
	Verbs       []Group // of the command or verb itself
	Flags       *pflag.FlagSet
	Groups      []FlagGroup // all of Flags, where --help shows only the first group
	Status      string
	Environment []Item
	FilesIntro  string
	Files       []Item
}

// FlagGroup holds the flags for one purpose, with a title of a word or two.
type FlagGroup struct {
	Title string
	Flags *pflag.FlagSet
}

// Group lists verbs for one purpose. Its title has a few words, such as "Send and read".
type Group struct {
	Title string
	Items []Item
}

// Item is a name and its description.
type Item struct{ Name, What string }

// StatusTitle begins the paragraph about the exit status.
const StatusTitle = "Exit status: "

// helpWidth is the greatest width of the help. Examples may be wider, since they are copied.
const helpWidth = 80

// The columns where the texts of verbs and of flags begin.
const nameColumn, flagColumn = 15, 28

// Help returns the page for --help. Of flags in groups it shows the first group.
func (p Page) Help() string {
	if p.Brief != "" {
		p.Long = p.Brief
	}
	if p.Flags == nil {
		return p.help("")
	}
	if len(p.Groups) == 0 {
		return p.help("\nFlags:\n" + flagHelp(p.Flags))
	}
	var others []string
	for _, g := range p.Groups[1:] {
		others = append(others, g.Title)
	}
	more := fmt.Sprintf("--help-all shows the rest: how it works, and the flags of %s.", strings.Join(others, ", "))
	return p.help("\n" + p.Groups[0].help() + "\n" + fill(more) + "\n")
}

// HelpAll returns the page for --help-all.
func (p Page) HelpAll() string {
	all := ""
	for _, g := range p.Groups {
		all += "\n" + g.help()
	}
	return p.help(all)
}

func (g FlagGroup) help() string { return "Flags (" + g.Title + "):\n" + flagHelp(g.Flags) }

func (p Page) help(flags string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n", fill(p.Long))
	for _, u := range p.Usage {
		fmt.Fprintf(&b, "  %s %s\n", p.Command, u)
	}
	fmt.Fprintf(&b, "\nExample:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(p.Example), "\n", "\n  "))
	for _, g := range p.Verbs {
		fmt.Fprintf(&b, "\n%s:\n", g.Title)
		for _, v := range g.Items {
			lines := wrap(v.What, helpWidth-nameColumn)
			fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-*s%s", nameColumn, "  "+v.Name, strings.Join(lines, "\n"+strings.Repeat(" ", nameColumn))), " "))
		}
	}
	if p.Flags != nil {
		b.WriteString(flags)
	}
	if p.Status != "" {
		fmt.Fprintf(&b, "\n%s\n", fill(StatusTitle+p.Status))
	}
	return b.String()
}

// fill wraps paragraphs that are too wide, and leaves the others alone.
func fill(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	tooWide := func(line string) bool { return len(line) > helpWidth }
	for i, p := range paragraphs {
		if slices.ContainsFunc(strings.Split(p, "\n"), tooWide) {
			paragraphs[i] = strings.Join(wrap(p, helpWidth), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// wrap breaks a text between words into lines of at most width bytes. Package layout does more, but
// the hook prints pages too and must not link that package.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// CutStatus separates the paragraph about the exit status from a verb's long text, because the page has a section for
// it. Without that paragraph the status is the usual sentence.
func CutStatus(long string) (rest, status string) {
	before, after, found := strings.Cut(long, "\n\n"+StatusTitle)
	if !found {
		return long, "0 done, 1 not done, with a sentence on stderr."
	}
	status, more, found := strings.Cut(after, "\n\n")
	if found {
		before += "\n\n" + more
	}
	return before, status
}

// flagHelp lists the flags. A tag that reaches the text column gets its own line.
func flagHelp(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		tag, text := DescribeFlag(f)
		if tag = "  " + tag; len(tag)+2 > flagColumn {
			b.WriteString(tag + "\n")
			tag = ""
		}
		for _, line := range wrap(text, helpWidth-flagColumn) {
			fmt.Fprintf(&b, "%-*s%s\n", flagColumn, tag, line)
			tag = ""
		}
	})
	return b.String()
}

// DescribeFlag returns how a flag is typed, and its text, with the default unless that is empty or zero.
func DescribeFlag(f *pflag.Flag) (tag, text string) {
	value, text := pflag.UnquoteUsage(f)
	tag = "--" + f.Name
	if f.Shorthand != "" {
		tag = "-" + f.Shorthand + ", " + tag
	}
	if value != "" {
		tag += " " + value
	}
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return tag, text
	}
	return tag, fmt.Sprintf("%s (default %s)", text, f.DefValue)
}
