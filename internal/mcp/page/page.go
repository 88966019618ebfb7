// Package page is the help of heartbeat-mcp and its flags. heartbeat shows and completes them,
// and links nothing else of it.
package page

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// CommandName is the command.
const CommandName = "heartbeat-mcp"

// The roles.
const (
	Agent    = "agent"
	Producer = "producer"
	Operator = "operator"
)

// Actions are what the command and its verbs do.
type Actions struct {
	Serve  func(*Serve, cli.Streams) error
	Config func(*Flags, cli.Streams) error
}

// Flags are those of the command itself, which serves the process that started it.
type Flags struct {
	Help, Version bool
	Inbox, Role   string
	To            []string
	Rate          int
	set           *pflag.FlagSet
}

// Set declares the flags. It returns the same set whenever it is called.
func (o *Flags) Set() *pflag.FlagSet {
	if o.set == nil {
		o.set = cli.NewFlags(CommandName)
		o.add(o.set)
		o.set.BoolVar(&o.Version, "version", false, "show the version")
		o.set.BoolVarP(&o.Help, "help", "h", false, "show this help")
	}
	return o.set
}

func (o *Flags) add(f *pflag.FlagSet) {
	cli.AddInbox(f, &o.Inbox)
	addRole(f, &o.Role, Agent, Agent, Producer, Operator)
	f.StringArrayVar(&o.To, "to", nil, "another inbox that the agent may send entries to, as `NAME=PATH`; may be repeated")
	f.IntVar(&o.Rate, "rate", DefaultRate, "how many entries agents may send into an inbox in an hour (0: any number)")
}

// DefaultRate lets agents hand on work, and stops those that do nothing else.
const DefaultRate = 60

func addRole(f *pflag.FlagSet, role *string, first string, all ...string) {
	*role = first
	f.Var(cli.Choice(role, all...), "role", "whose tools to give: those of an agent that works on an entry, of a producer that sends some, or of an operator")
}

// Check refuses what cannot be meant.
func (o *Flags) Check() error {
	switch {
	case o.Rate < 0:
		return fmt.Errorf("--rate is %d: it must be 0 or more", o.Rate)
	case len(o.To) > 0 && o.Role != Agent:
		return fmt.Errorf("--to is for --role %s: a %s has one inbox", Agent, o.Role)
	}
	_, err := Named(o.To)
	return err
}

// Inbox is an inbox with the name by which it is asked for.
type Inbox struct{ Name, Path string }

// Named reads NAME=PATH of flags.
func Named(all []string) (list []Inbox, err error) {
	seen := map[string]bool{}
	for _, one := range all {
		name, path, ok := strings.Cut(one, "=")
		switch {
		case !ok || path == "":
			return nil, fmt.Errorf("%q is not NAME=PATH", one)
		case !isName(name):
			return nil, fmt.Errorf("the name %q of an inbox: letters, digits, - and _, at most 64", name)
		case seen[name]:
			return nil, fmt.Errorf("the name %q is given twice", name)
		}
		seen[name] = true
		list = append(list, Inbox{name, path})
	}
	return list, nil
}

func isName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// Serve are the flags of serve.
type Serve struct {
	Listen, TokenFile, Role string
	Inboxes                 []string
}

func serveVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "serve",
		Short: "serve programs over HTTP, with a token",
		Long: `Serve the tools of producers or operators over HTTP (streamable), each inbox under
the path /NAME. The address is one of this machine alone, or a socket in a folder;
port 0 takes a free one. Once it listens it prints its URLs, one a line.

Each request needs the header Authorization: Bearer TOKEN, with the first line of
--token-file, which nobody else may be able to read. The tools of agents are not
served: an agent is known by its process.

Exit status: 128 and the number of the signal that ended it; 1 it cannot serve, with a
sentence on stderr.`,
		Example: `heartbeat-mcp serve --listen 127.0.0.1:8080 --token-file token --inbox work=work/inbox.jsonl
heartbeat-mcp serve --listen unix:/run/heartbeat/mcp.sock --token-file token --role operator --inbox work=work/inbox.jsonl`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			o := &Serve{}
			f := cli.NewFlags("serve")
			f.StringVar(&o.Listen, "listen", "127.0.0.1:0", "where to listen: `HOST:PORT` of this machine alone, or unix:PATH")
			f.StringVar(&o.TokenFile, "token-file", "", "the `file` whose first line every request has to bring")
			f.StringArrayVar(&o.Inboxes, "inbox", nil, "an inbox to serve, as `NAME=PATH`; may be repeated")
			addRole(f, &o.Role, Producer, Producer, Operator)
			return f, func(args []string, s cli.Streams) error {
				err := cli.NoArgs(args)
				switch {
				case err != nil:
				case o.TokenFile == "":
					err = errors.New("--token-file is needed: without a token every user of this machine could send")
				case len(o.Inboxes) == 0:
					err = errors.New("--inbox NAME=PATH is needed")
				default:
					if _, err = Named(o.Inboxes); err == nil {
						return do.Serve(o, s)
					}
				}
				return cli.Usage(err)
			}
		},
	}
}

func configVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "print-config",
		Short: "print what wires it into a client",
		Long: `Print the JSON that has a client start heartbeat-mcp with these flags: a file for
claude --mcp-config, or the .mcp.json of a project. Paths in it are absolute.

Exit status: 0 printed, 1 not.`,
		Example: `heartbeat-mcp print-config --inbox work/inbox.jsonl > mcp.json
claude --mcp-config=mcp.json --allowedTools=mcp__heartbeat "Read CLAUDE.md"`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			o := &Flags{}
			f := cli.NewFlags("print-config")
			o.add(f)
			return f, func(args []string, s cli.Streams) error {
				if err := errors.Join(cli.NoArgs(args), o.Check()); err != nil {
					return cli.Usage(err)
				}
				return do.Config(o, s)
			}
		},
	}
}

// All returns all verbs.
func All(do Actions) []cli.Verb { return []cli.Verb{serveVerb(do), configVerb(do)} }

// Page describes the command.
func Page() cli.Page {
	page := cli.Page{
		Command: CommandName,
		Short:   "the inbox as tools of the Model Context Protocol",
		Long: `heartbeat-mcp gives a client of the Model Context Protocol the inbox as tools, over
stdin and stdout. An agent says what becomes of the entry that it works on, and sends
entries; a producer sends entries and reads results; an operator looks, and steers.

What an agent says counts for its own entry alone, and once its turn has ended. It is
known by its process: heartbeat-mcp has to be started by the client, as clients do.`,
		Usage: []string{"[--inbox PATH] [--role ROLE]", "VERB [flags]"},
		Example: `heartbeat-mcp print-config --inbox work/inbox.jsonl > mcp.json
claude --mcp-config=mcp.json --allowedTools=mcp__heartbeat "Read CLAUDE.md"`,
		Flags:       (&Flags{}).Set(),
		Status:      "0 the client has closed stdin; 1 it cannot serve, with a sentence on stderr.",
		Environment: cli.InboxEnvironment((&Flags{}).Set()),
		SeeAlso:     []string{"heartbeat", "heartbeat-launch", "heartbeat-stop"},
	}
	group := cli.Group{Title: "Verbs"}
	for _, v := range All(Actions{}) {
		group.Items = append(group.Items, cli.Item{Name: v.Name, What: v.Short})
		page.SeeAlso = append(page.SeeAlso, v.Page(CommandName, nil).ManualName())
	}
	page.Verbs = append(page.Verbs, group)
	return page
}

// PageNamed returns the page of a verb, or without a name that of the command.
func PageNamed(words []string) (cli.Page, error) {
	switch len(words) {
	case 0:
		return Page(), nil
	case 1:
	default:
		return cli.Page{}, fmt.Errorf("%d verbs: one page is printed at a time", len(words))
	}
	list := All(Actions{})
	v, found := cli.Find(list, words[0])
	if !found {
		return cli.Page{}, cli.UnknownVerb(words[0], cli.Names(list))
	}
	return pageOf(v), nil
}

// VerbPages returns the pages of all verbs.
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
