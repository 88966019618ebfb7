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

// purpose groups the verbs that serve it.
type purpose struct {
	title string
	verbs []cli.Verb
}

// purposes returns all verbs, in the order in which help lists them.
func purposes() []purpose {
	all := []purpose{
		{"Send and read", []cli.Verb{sendVerb(), resultsVerb(), statusVerb(), costsVerb(), peekVerb(), logVerb(), metricsVerb(), notifyVerb()}},
		{"Steer", []cli.Verb{pauseVerb(), resumeVerb(), cancelVerb()}},
		{"Recover and tidy up", []cli.Verb{recoverVerb(), deadLetterVerb(), compactVerb(), fsckVerb()}},
		{"Babysitter runs", []cli.Verb{runsVerb(), orchestrateVerb(), resultVerb(), breakpointVerb()}},
		{"Set up", []cli.Verb{initVerb(), installVerb(), uninstallVerb(), doctorVerb(), demoVerb(), completionVerb(), versionVerb()}},
	}
	last := &all[len(all)-1]
	last.verbs = append(last.verbs, manVerb(verbsOf(all)), helpVerb(verbsOf(all)))
	return all
}

// verbs returns those of all purposes.
func verbs() []cli.Verb { return verbsOf(purposes()) }

func verbsOf(all []purpose) (list []cli.Verb) {
	for _, p := range all {
		list = append(list, p.verbs...)
	}
	return list
}

// commandPage describes heartbeat itself.
func commandPage() cli.Page {
	page := cli.Page{
		Command: commandName,
		Short:   "work through an inbox with Claude Code sessions",
		Long: `heartbeat sends entries to a JSONL inbox, shows what became of them, and wires
Claude Code to work through them, one turn each.`,
		Usage: []string{"VERB [flags]", "help VERB", "--version"},
		Example: `heartbeat install --inbox work/inbox.jsonl --scope project
heartbeat send --inbox work/inbox.jsonl "summarise the open issues"
claude "Read CLAUDE.md"`,
		Flags:   (&ownFlags{}).set(),
		Status:  "that of the verb; 0 done, 1 not done, with a sentence on stderr.",
		SeeAlso: []string{"heartbeat-stop", "heartbeat-launch", "heartbeat-host", "heartbeat-mcp", "heartbeat-nats", "heartbeat-watch"},
	}
	for _, p := range purposes() {
		group := cli.Group{Title: p.title}
		for _, v := range p.verbs {
			group.Items = append(group.Items, cli.Item{Name: v.Name, What: v.Short})
			page.SeeAlso = append(page.SeeAlso, v.Page(commandName, nil).ManualName())
		}
		page.Verbs = append(page.Verbs, group)
	}
	return page
}

// overview is the first screen: heartbeat's own page, with the other commands that are
// installed.
func overview() string {
	page := commandPage()
	page.Flags, page.Status = nil, "" // it is long enough without them
	if found := externalItems(); len(found) > 0 {
		page.Verbs = append(page.Verbs, cli.Group{Title: "Other commands (heartbeat X runs heartbeat-X)", Items: found})
	}
	return page.Help()
}
