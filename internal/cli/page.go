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
	Verbs       []Item // of the command itself
	Flags       *pflag.FlagSet
	Status      string
	Environment []Item
	FilesIntro  string
	Files       []Item
	SeeAlso     []string // names of manual pages
}

// Item is something that has a name, and what is said of it.
type Item struct{ Name, What string }

// StatusTitle begins what the help says of the exit status.
const StatusTitle = "Exit status: "

// Help is the page as --help shows it.
func (p Page) Help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n", p.Long)
	for _, u := range p.Usage {
		fmt.Fprintf(&b, "  %s %s\n", p.Command, u)
	}
	fmt.Fprintf(&b, "\nExample:\n%s\n", indent(p.Example))
	if len(p.Verbs) > 0 {
		b.WriteString("\nVerbs:\n")
		for _, v := range p.Verbs {
			fmt.Fprintf(&b, "  %-12s%s\n", v.Name, v.What)
		}
	}
	if p.Flags != nil {
		fmt.Fprintf(&b, "\nFlags:\n%s", p.Flags.FlagUsages())
	}
	fmt.Fprintf(&b, "\n%s%s\n", StatusTitle, p.Status)
	return b.String()
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ")
}
