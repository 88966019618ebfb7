package verbs

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/disk"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
)

// maxSeed limits a file with a seed, in bytes. A seed has 58.
const maxSeed = 4 << 10

type newAgent struct {
	stream, seed, account string
	json                  bool
}

func setupAgentVerb() cli.Verb {
	return cli.Verb{
		Name:  "agent",
		Args:  "NAME",
		Short: "give an agent credentials with no more rights than it needs",
		Long: `Give agent NAME credentials. This asks no server, and no server has to be reloaded.

With --account-seed, NAME.creds in this folder gets a new user of that account, mode 0600,
signed with the seed: heartbeat-nats agent --creds NAME.creds --name NAME connects with it.
The seed may be that of a signing key; --account is then the account's public key, as
nsc describe account has it. A seed is never printed.

Without it, print an account for the agent to put into the configuration of a server that
no operator signs, beside the account of the stream.

Exit status: 0 done; 1 not.`,
		Example: `heartbeat-nats setup agent one --account-seed agents.nk --account ABVS...
heartbeat-nats setup agent three >>nats-agents.conf`,
		Build: func(f *pflag.FlagSet) cli.Action {
			var o newAgent
			f.StringVar(&o.stream, "stream", "WORK", "`name` of the stream that it works for")
			f.StringVar(&o.seed, "account-seed", "", "`file` with the seed of the account that it is a user of, or of a signing key")
			f.StringVar(&o.account, "account", "", "the account's public `key` where the seed is that of a signing key")
			f.BoolVar(&o.json, "json", false, "print JSON, one object a line")
			return func(args []string, s cli.Streams) error {
				if err := o.check(args); err != nil {
					return cli.Usage(err)
				}
				if err := o.make(args[0], s); err != nil {
					return fmt.Errorf("setup agent %s: %w", args[0], err)
				}
				return nil
			}
		},
	}
}

func (o *newAgent) check(args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("name the agent, as its --name has it")
	case len(args) > 1:
		return cli.NoArgs(args[1:])
	case args[0] == "" || len(args[0]) > maxName:
		return fmt.Errorf("the name has %d bytes, and may have 1 to %d", len(args[0]), maxName)
	case !utf8.ValidString(args[0]):
		return fmt.Errorf("the name is %q, which is not UTF-8, as an agent's has to be", args[0])
	case o.account != "" && o.seed == "":
		return errors.New("--account is about the seed of a signing key: name its file with --account-seed")
	}
	return message.CheckStream(o.stream)
}

// made is what an agent was given.
type made struct {
	Agent     string   `json:"agent"`
	File      string   `json:"file,omitempty"`
	Account   string   `json:"account,omitempty"` // its public key
	Text      string   `json:"text,omitempty"`    // for a server's configuration
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe,omitempty"`
}

func (o *newAgent) make(name string, s cli.Streams) error {
	m := &made{Agent: name, Publish: setup.Rights(o.stream, name)}
	if o.seed == "" {
		m.Text = setup.Account(o.stream, name)
		if o.json {
			return cli.PrintJSON(s.Out, m)
		}
		return s.Print(m.Text)
	}
	seed, err := disk.ReadGiven(o.seed, maxSeed)
	if err != nil {
		return err
	}
	text, account, err := setup.Credentials(o.stream, name, bytes.TrimSpace(seed), o.account)
	clear(seed)
	if err != nil {
		return fmt.Errorf("%s: %w", o.seed, err)
	}
	m.File, m.Account, m.Subscribe = message.Key(name)+".creds", account, []string{setup.InboxPrefix(name) + ".>"}
	is, err := disk.Exists(m.File)
	if err == nil && !is {
		err = disk.Publish(m.File, text, true)
	}
	clear(text)
	if is {
		return fmt.Errorf("%s is there already, and an agent may use it: remove it, or go to another folder", m.File)
	}
	if err != nil {
		return err
	}
	return program.Report(s, o.json, m, fmt.Sprintf("%s (agent %s of account %s, for stream %s)", m.File, name, account, o.stream))
}
