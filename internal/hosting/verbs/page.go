package verbs

import (
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// CommandName is the command.
const CommandName = "heartbeat-host"

// purpose groups the verbs that serve it.
type purpose struct {
	title string
	verbs []cli.Verb
}

// purposes returns all verbs, in the order in which help lists them.
func purposes(do Actions) []purpose {
	all := []purpose{
		{"Host", []cli.Verb{startVerb(do), runVerb(do)}},
		{"Look at sessions", []cli.Verb{listVerb(do), statusVerb(do), logsVerb(do), attachVerb(do)}},
		{"Steer", []cli.Verb{sendVerb(do), cancelVerb(do)}},
		{"Tidy up", []cli.Verb{drainVerb(do), gcVerb(do)}},
	}
	others := verbsOf(all)
	return append(all, purpose{"About", []cli.Verb{versionVerb(), manVerb(others), helpVerb(others)}})
}

// All returns all verbs.
func All(do Actions) []cli.Verb { return verbsOf(purposes(do)) }

func verbsOf(all []purpose) (list []cli.Verb) {
	for _, p := range all {
		list = append(list, p.verbs...)
	}
	return list
}

// OwnFlags are those of the command itself.
type OwnFlags struct{ Help, Version bool }

// Set returns the flags.
func (o *OwnFlags) Set() *pflag.FlagSet {
	f := cli.NewFlags(CommandName)
	f.BoolVarP(&o.Help, "help", "h", false, "show this help")
	f.BoolVar(&o.Version, "version", false, "show the version")
	return f
}

// Page describes the command itself.
func Page() cli.Page {
	page := cli.Page{
		Command: CommandName,
		Short:   "host a session of Claude Code that outlives whoever started it",
		Long: `heartbeat-host hosts one session of Claude Code for a guild, which is any program
that starts sessions and may itself restart at any time. Each session has a process
of its own, which keeps the transcript in the guild's database, serves the guild's
tools to the session, and reports over HTTP that the session runs and how it ended.
What cannot be reported is kept and reported later.`,
		Usage: []string{"VERB [flags]", "help VERB", "--version"},
		Example: `heartbeat-host start < session.json
heartbeat-host attach ses-1
heartbeat-host cancel ses-1`,
		Flags:   (&OwnFlags{}).Set(),
		Status:  "that of the verb; 0 done, 1 not done, with a sentence on stderr.",
		SeeAlso: []string{"heartbeat", "heartbeat-stop", "heartbeat-launch"},
	}
	for _, p := range purposes(Actions{}) {
		group := cli.Group{Title: p.title}
		for _, v := range p.verbs {
			group.Items = append(group.Items, cli.Item{Name: v.Name, What: v.Short})
			page.SeeAlso = append(page.SeeAlso, v.Page(CommandName, nil).ManualName())
		}
		page.Verbs = append(page.Verbs, group)
	}
	return page
}

// VerbPages are those of all verbs.
func VerbPages() (pages []cli.Page) {
	for _, v := range All(Actions{}) {
		pages = append(pages, pageOf(v))
	}
	return pages
}

func pageOf(v cli.Verb) cli.Page {
	flags, _, _ := v.Built()
	return v.Page(CommandName, flags)
}
