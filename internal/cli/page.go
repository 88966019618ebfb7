package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Page describes a command or one of its verbs. Both the help and the manual page are
// made from it.
type Page struct {
	Command     string // as one types it: heartbeat-stop, heartbeat send
	Short       string
	Long        string
	Usage       []string // what follows the command, a line for each way to call it
	Example     string
	Verbs       []Group // of the command or verb itself
	Flags       *pflag.FlagSet
	Status      string
	Environment []Item
	FilesIntro  string
	Files       []Item
	SeeAlso     []string // names of manual pages
}

// Group is a list of verbs for one purpose, with a title of a few words: "Send and
// read".
type Group struct {
	Title string
	Items []Item
}

// Item is a name and its description.
type Item struct{ Name, What string }

// StatusTitle begins the paragraph about the exit status.
const StatusTitle = "Exit status: "

// helpWidth is the help's maximal width. Examples may be wider, since they are copied.
const helpWidth = 80

// nameColumn is the column in which the texts of verbs begin.
const nameColumn = 15

// Help is the page as --help shows it.
func (p Page) Help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n", fill(p.Long))
	for _, u := range p.Usage {
		fmt.Fprintf(&b, "  %s %s\n", p.Command, u)
	}
	fmt.Fprintf(&b, "\nExample:\n%s\n", indent(p.Example))
	for _, g := range p.Verbs {
		fmt.Fprintf(&b, "\n%s:\n", g.Title)
		for _, v := range g.Items {
			lines := wrap(v.What, helpWidth-nameColumn)
			fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-*s%s", nameColumn, "  "+v.Name, strings.Join(lines, "\n"+strings.Repeat(" ", nameColumn))), " "))
		}
	}
	if p.Flags != nil {
		b.WriteString("\nFlags:\n" + flagHelp(p.Flags))
	}
	if p.Status != "" {
		fmt.Fprintf(&b, "\n%s\n", fill(StatusTitle+p.Status))
	}
	return b.String()
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ")
}

// fill wraps the paragraphs that are too wide. Others stay as they are.
func fill(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		for line := range strings.SplitSeq(p, "\n") {
			if len(line) > helpWidth {
				paragraphs[i] = strings.Join(wrap(p, helpWidth), "\n")
				break
			}
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// wrap breaks a text between words into lines of at most width bytes. Package layout
// does more, but the hook prints pages too and must not link it.
func wrap(text string, width int) (lines []string) {
	now := ""
	for _, word := range strings.Fields(text) {
		if now != "" && len(now)+1+len(word) > width {
			lines, now = append(lines, now), ""
		}
		if now != "" {
			now += " "
		}
		now += word
	}
	return append(lines, now)
}
