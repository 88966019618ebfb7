// Package mcp is the verb mcp, which offers an inbox as tools of the Model Context Protocol to agents, producers
// and operators.
//
// It decides nothing itself: agents speak through internal/task, producers send as `heartbeat send` does, and
// operators run the verbs of heartbeat.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
)

// serverName is the server's name for clients, in which the tools are mcp__heartbeat__task_done and so on.
const serverName = "heartbeat"

const (
	agent    = "agent"
	producer = "producer"
	operator = "operator"
)

// flags belong to a server on stdin and stdout.
type flags struct {
	inbox, role string
	to          []string
	others      []namedInbox // to, parsed
	rate        int
}

// Verb returns the verb mcp. run runs the verbs of operators.
func Verb(run cli.Verbs) cli.Verb {
	return cli.Verb{
		Name:  "mcp",
		Args:  "[VERB]",
		Short: "the inbox as tools of the Model Context Protocol",
		Long: `Give a client of the Model Context Protocol the inbox as tools, over stdin and stdout.
An agent says what becomes of the entry that it works on, and sends entries; a producer
sends entries and reads results; an operator inspects and controls the inbox.

What an agent says counts for its own entry alone, and once its turn has ended. An agent
is known by its process, so its client has to start heartbeat mcp.

Exit status: 0 the client has closed stdin; 1 it cannot serve, with a sentence on stderr.`,
		Example: `heartbeat mcp print-config > mcp.json
claude --mcp-config=mcp.json --allowedTools=mcp__heartbeat "Read CLAUDE.md"`,
		Build: func(f *pflag.FlagSet) cli.Action {
			o := newFlags(f)
			return func(args []string, s cli.Streams) error {
				if err := o.check(args); err != nil {
					return err
				}
				server, err := open(o, run)
				if err != nil {
					return err
				}
				err = server.build().Run(context.Background(), transport(validated(s.In, s.Out), unclosed{s.Out}))
				if err == nil || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
					return nil
				}
				return fmt.Errorf("serve the client on stdin and stdout: %w", err)
			}
		},
		Verbs: []cli.Verb{serveVerb(run), configVerb()},
	}
}

func newFlags(f *pflag.FlagSet) *flags {
	o := &flags{}
	cli.AddInbox(f, &o.inbox)
	addRole(f, &o.role, agent, agent, producer, operator)
	f.StringArrayVar(&o.to, "to", nil, "another inbox that the agent may send entries to, as `NAME=PATH`; may be repeated")
	f.IntVar(&o.rate, "rate", settings.AgentRate, "how many entries agents may send into an inbox in an hour (0: any number)")
	return o
}

func addRole(f *pflag.FlagSet, role *string, first string, all ...string) {
	*role = first
	f.Var(cli.Choice(role, all...), "role", "whose tools to give: those of an agent that works on an entry, of a producer that sends some, or of an operator")
}

func (o *flags) check(args []string) error {
	err := cli.NoArgs(args)
	switch {
	case err != nil:
	case o.rate < 0:
		err = fmt.Errorf("--rate is %d: it must be 0 or more", o.rate)
	case len(o.to) > 0 && o.role != agent:
		err = fmt.Errorf("--to is for --role %s: a %s has one inbox", agent, o.role)
	default:
		o.others, err = parseInboxes(o.to)
	}
	if err != nil {
		return cli.Usage(err)
	}
	return nil
}

type namedInbox struct{ name, path string }

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

func parseInboxes(all []string) (list []namedInbox, err error) {
	seen := map[string]bool{}
	for _, one := range all {
		name, path, ok := strings.Cut(one, "=")
		switch {
		case !ok || path == "":
			return nil, fmt.Errorf("%q is not NAME=PATH", one)
		case name == "" || len(name) > 64 || strings.Trim(name, nameLetters) != "":
			return nil, fmt.Errorf("the name %q of an inbox must have 1 to 64 letters, digits, - and _", name)
		case seen[name]:
			return nil, fmt.Errorf("the name %q is given twice", name)
		}
		seen[name] = true
		list = append(list, namedInbox{name, path})
	}
	return list, nil
}

func configVerb() cli.Verb {
	return cli.Verb{
		Name:  "print-config",
		Short: "print the settings that wire it into a client",
		Long: `Print the JSON that has a client start heartbeat mcp with these flags: a file for
claude --mcp-config, or the .mcp.json of a project. Paths in it are absolute.

Exit status: 0 printed, 1 not.`,
		Example: `heartbeat mcp print-config > mcp.json
claude --mcp-config=mcp.json --allowedTools=mcp__heartbeat "Read CLAUDE.md"`,
		Build: func(f *pflag.FlagSet) cli.Action {
			o := newFlags(f)
			return func(args []string, s cli.Streams) error {
				if err := o.check(args); err != nil {
					return err
				}
				heartbeat, err := cli.Beside("heartbeat")
				if err != nil {
					return err
				}
				server, err := o.server(heartbeat)
				if err != nil {
					return err
				}
				text, err := settings.InstallServer(nil, server)
				if err != nil {
					return err
				}
				_, err = s.Out.Write(text)
				return err
			}
		},
	}
}

// server returns the entry of a client's settings that runs heartbeat with these flags and absolute paths.
func (o *flags) server(heartbeat string) (settings.Server, error) {
	if o.inbox == "" {
		return settings.Server{}, cli.ErrNoInbox
	}
	path, err := filepath.Abs(o.inbox)
	args := []string{"mcp", "--inbox", path, "--role", o.role}
	if o.role == agent {
		args = append(args, "--rate", fmt.Sprint(o.rate))
	}
	for _, one := range o.others {
		path, e := filepath.Abs(one.path)
		err = errors.Join(err, e)
		args = append(args, "--to", one.name+"="+path)
	}
	return settings.Server{Name: serverName, Command: heartbeat, Args: args}, err
}
