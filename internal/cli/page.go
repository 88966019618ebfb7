package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Page is what there is to say of a command or of one of its verbs. Its help and
// its manual page are both made from it.
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

// Group is what serves one purpose. A title is a few words: "Send and read".
type Group struct {
	Title string
	Items []Item
}

// Item is something that has a name, and what is said of it.
type Item struct{ Name, What string }

// StatusTitle begins what the help says of the exit status.
const StatusTitle = "Exit status: "

// helpWidth is how wide the help is at most, examples aside: those are for copying.
const helpWidth = 80

// nameColumn is where the texts beside the names of verbs begin.
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
	fmt.Fprintf(&b, "\n%s\n", fill(StatusTitle+p.Status))
	return b.String()
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ")
}

// fill breaks the paragraphs that are too wide anew. Others stay as they were laid out.
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
// can do more, but the hook, which prints pages as well, does not link it.
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
