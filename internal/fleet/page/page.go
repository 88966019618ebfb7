package page

import (
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// CommandName is the command.
const CommandName = "heartbeat-nats"

// Actions are what the verbs do, one for each.
type Actions struct {
	Setup   func(*Setup, cli.Streams) error
	Agent   func(*Agent, cli.Streams) error
	Send    func(*Send, cli.Streams) error
	Results func(*Results, cli.Streams) error
	Status  func(*Status, cli.Streams) error
	Metrics func(*Metrics, cli.Streams) error
	Drain   func(*Drain, cli.Streams) error

	DeadList, DeadShow, DeadRequeue, DeadPurge func(*Dead, cli.Streams) error
}

// purpose groups the verbs that serve it.
type purpose struct {
	title string
	verbs []cli.Verb
}

// purposes returns all verbs, in the order in which help lists them. A purpose without
// verbs is left out.
func purposes(do Actions) (all []purpose) {
	for _, p := range []purpose{
		{"Begin", []cli.Verb{setupVerb(do)}},
		{"Work", []cli.Verb{agentVerb(do)}},
		{"Send and read", []cli.Verb{sendVerb(do), resultsVerb(do)}},
		{"Look after agents", []cli.Verb{statusVerb(do), metricsVerb(do), drainVerb(do)}},
		{"Tidy up", []cli.Verb{deadVerb(do)}},
	} {
		if len(p.verbs) > 0 {
			all = append(all, p)
		}
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
		Short:   "many agents on many machines, one message answered once",
		Long: `heartbeat-nats has any number of agents, on any number of machines, work through one
stream of NATS JetStream. Each agent has an inbox and a launcher of its own. A message
counts as done only when its entry was answered, and whoever answers it first is the
only one who is heard.`,
		Usage: []string{"VERB [flags]", "help VERB", "--version"},
		Example: `heartbeat-nats setup --stream WORK --subjects 'work.>'
heartbeat-nats setup --stream WORK --subjects 'work.>' --embed ~/work`,
		Flags:       (&OwnFlags{}).Set(),
		Status:      "that of the verb; 0 done, 1 not done, with a sentence on stderr.",
		Environment: environment(),
		SeeAlso:     []string{"heartbeat", "heartbeat-launch"},
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

// VerbPages are those of all verbs, and of the verbs below them.
func VerbPages() []cli.Page { return pagesOf(All(Actions{})) }

func pagesOf(list []cli.Verb) (pages []cli.Page) {
	for _, v := range list {
		pages = append(pages, pageOf(v))
		for i := range v.Verbs {
			v.Verbs[i].Parent = v.Path()
		}
		pages = append(pages, pagesOf(v.Verbs)...)
	}
	return pages
}

func pageOf(v cli.Verb) cli.Page {
	flags, _, _ := v.Built()
	return v.Page(CommandName, flags)
}
