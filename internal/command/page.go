package command

import (
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// ownFlags are those of heartbeat itself.
type ownFlags struct{ help, version bool }

func (o *ownFlags) set() *pflag.FlagSet {
	f := cli.NewFlags(commandName)
	f.BoolVarP(&o.help, "help", "h", false, "show this help")
	f.BoolVar(&o.version, "version", false, "show the version")
	return f
}

// commandPage is what there is to say of heartbeat itself.
func commandPage() cli.Page {
	var items []cli.Item
	pages := []string{"heartbeat-stop", "heartbeat-launch"}
	for _, v := range verbs() {
		items = append(items, cli.Item{Name: v.Name, What: v.Short})
		pages = append(pages, v.Page(commandName, nil).ManualName())
	}
	return cli.Page{
		Command: commandName,
		Short:   "work through an inbox with Claude Code sessions",
		Long: `heartbeat sends entries to a JSONL inbox, shows what became of them, and wires
Claude Code to work through them, one turn each.`,
		Usage: []string{"VERB [flags]"},
		Example: `heartbeat install --inbox work/inbox.jsonl --scope project
heartbeat send --inbox work/inbox.jsonl "summarise the open issues"
claude "Read CLAUDE.md"`,
		Verbs:   items,
		Flags:   (&ownFlags{}).set(),
		Status:  "that of the verb; 0 done, 1 not done, with a sentence on stderr.",
		SeeAlso: pages,
	}
}
