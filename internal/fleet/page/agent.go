package page

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	recovery "heartbeat/recover"
)

// Agent is one agent.
type Agent struct {
	OnStream
	Subject string // "" for all of the stream
	Inbox   string
	Name    string // "" for that of the machine and the inbox's folder

	NoSession bool
	Mode      string
	Launch    []string // flags for heartbeat-launch
	Orphan    cli.OrphanFlags
	Command   []string

	Slots      int
	QueueDepth int // 0: as many as there are slots
	Stall      time.Duration
	GiveBack   bool
	DrainOn    string
}

// The modes of an agent's launcher.
const (
	ModeDrain   = "drain"
	ModePersist = "persist"
	drainOnTerm = "TERM"
)

func agentVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "agent",
		Args:  "[-- COMMAND [ARG ...]]",
		Short: "work through messages: pull one, have it answered, tell the stream",
		Long: `Pull messages from a stream while the inbox has room, put each into the inbox, and run
sessions with COMMAND by heartbeat-launch. Once the entry is answered, the stream is told:
whoever answers a message first is the only one who is heard.

While an entry waits or is worked on, its message is kept from other agents. If nothing has
moved for --stall, it is not kept any longer and goes elsewhere. The entry goes on here, and
the first answer counts. While sessions are held up, by a rate limit for one, what waits
goes back to the stream.

An agent that is killed goes on where it was once it runs again, with the same --inbox.
Messages come in the order of the stream with one agent and --slots 1; with more of either,
or when a message comes again, a later one may be answered first.

COMMAND is what heartbeat-launch runs: heartbeat-launch --help says how. With --no-session
nothing is run: the sessions that work on the inbox are yours.

A signal ends the agent: the session is ended, and what nobody works on goes back. With
--drain-on TERM, SIGTERM has it finish what it holds first; a second one ends it.

Exit status: 0 it has drained; 78 sessions cannot be run like this; 128+n signal n ended
it; 1 any other failure.`,
		Example: `heartbeat-nats agent --subject work.review --inbox work/inbox.jsonl -- claude "Read CLAUDE.md"
heartbeat-nats agent --inbox work/inbox.jsonl --drain-on TERM --launch --cwd=project -- claude
heartbeat-nats agent --inbox work/inbox.jsonl --no-session --slots 4`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Agent
			stall := cli.Span(20 * time.Minute)
			f := cli.NewFlags("agent")
			f.StringVar(&o.Subject, "subject", "", "take messages of this `subject` alone (default: all of the stream)")
			cli.AddInbox(f, &o.Inbox)
			f.StringVar(&o.Name, "name", "", "`name` of this agent, which no other may have (default: that of the machine and of the inbox's folder)")
			f.BoolVar(&o.NoSession, "no-session", false, "run no sessions: others work on the inbox")
			o.Mode = ModeDrain
			f.Var(cli.Choice(&o.Mode, ModeDrain, ModePersist), "mode", "drain: a session ends when nothing waits; persist: it stays, and is woken")
			o.Orphan.Add(f)
			o.Orphan.Policy = string(recovery.Retry)
			f.Lookup("on-orphan").DefValue = o.Orphan.Policy
			f.StringArrayVar(&o.Launch, "launch", nil, "another `flag` for heartbeat-launch, such as --launch --cwd=project; may be repeated")
			f.IntVar(&o.Slots, "slots", 1, "how many messages to hold at a time")
			f.IntVar(&o.QueueDepth, "queue-depth", 0, "take no message while so many entries are in the inbox, those of others too (0: as many as --slots)")
			f.Var(&stall, "stall", "let a message go elsewhere once nothing has moved for so long (0: never)")
			f.BoolVar(&o.GiveBack, "give-back", false, "give back what waits while the inbox is paused, in place of keeping it")
			f.Var(cli.Choice(&o.DrainOn, drainOnTerm), "drain-on", "TERM: SIGTERM has it finish what it holds before it ends")
			o.addStream(f)
			o.add(f)
			return f, func(args []string, s cli.Streams) error {
				o.Stall, o.Command, o.Orphan.Given = time.Duration(stall), args, f.Changed("on-orphan")
				if !f.Changed("stream") && o.Subject != "" {
					o.Stream = "" // that of the subject
				}
				if err := o.check(f); err != nil {
					return cli.Usage(err)
				}
				return do.Agent(&o, s)
			}
		},
	}
}

func (o *Agent) check(f *pflag.FlagSet) error {
	switch {
	case o.Inbox == "":
		return cli.ErrNoInbox
	case !o.NoSession && len(o.Command) == 0:
		return errors.New("name the command that sessions run behind --, such as -- claude \"Read CLAUDE.md\", or say with --no-session that others work on the inbox")
	case o.NoSession && (len(o.Command) > 0 || len(o.Launch) > 0 || f.Changed("mode")):
		return errors.New("--no-session runs no launcher: leave out the command, --launch and --mode")
	case o.Slots < 1 || o.Slots > maxSlots:
		return fmt.Errorf("--slots is %d: it takes 1 to %d", o.Slots, maxSlots)
	case len(o.Name) > maxName:
		return fmt.Errorf("--name has %d bytes, and may have no more than %d", len(o.Name), maxName)
	case o.QueueDepth < 0:
		return fmt.Errorf("--queue-depth is %d: it takes 0 or more", o.QueueDepth)
	}
	if o.QueueDepth == 0 {
		o.QueueDepth = o.Slots
	}
	if err := o.Orphan.Check(); err != nil {
		return err
	}
	if o.Stream == "" {
		return o.Common.check(f)
	}
	return o.OnStream.check(f)
}

// maxSlots is far under what the ledger takes.
const maxSlots = 100

// maxName is the longest name of an agent, in bytes.
const maxName = 256

// DrainsOnTerm reports whether SIGTERM has the agent finish first.
func (o *Agent) DrainsOnTerm() bool { return o.DrainOn == drainOnTerm }
