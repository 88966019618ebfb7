package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/worker"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

type agent struct {
	common
	worker.Options
	noSession bool
	mode      string
	drainOn   string
}

const (
	modeDrain   = "drain"
	modePersist = "persist"
	drainOnTerm = "TERM"
	maxSlots    = 100 // far fewer than a ledger holds
	maxName     = 256 // bytes
)

func agentVerb() cli.Verb {
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

Exit status: 0 it has drained; 78 somebody has to do something first, and no launcher of
this agent has worked; 128+n signal n ended it; 1 any other failure.`,
		Example: `heartbeat-nats agent --subject work.review --inbox work/inbox.jsonl -- claude "Read CLAUDE.md"
heartbeat-nats agent --inbox work/inbox.jsonl --drain-on TERM --launch --cwd=project -- claude
heartbeat-nats agent --inbox work/inbox.jsonl --no-session --slots 4`,
		Build: func(f *pflag.FlagSet) cli.Action {
			var o agent
			f.StringVar(&o.Subject, "subject", "", "take messages of this `subject` alone (default: all of the stream)")
			cli.AddInbox(f, &o.Inbox)
			f.StringVar(&o.Agent, "name", "", "`name` of this agent, which no other may have (default: that of the machine and of the inbox's folder)")
			f.BoolVar(&o.noSession, "no-session", false, "run no sessions: others work on the inbox")
			o.mode = modeDrain
			f.Var(cli.Choice(&o.mode, modeDrain, modePersist), "mode", "drain: a session ends when nothing waits; persist: it stays, and is woken")
			o.Orphan.Policy = recovery.Retry
			cli.AddOrphan(f, &o.Orphan)
			f.StringArrayVar(&o.Launch, "launch", nil, "another `flag` for heartbeat-launch, such as --launch --cwd=project; may be repeated")
			f.IntVar(&o.Slots, "slots", 1, "how many messages to hold at a time")
			f.Var(cli.AtLeast(&o.QueueDepth, 0), "queue-depth", "take no message while so many entries are in the inbox, those of others too (0: as many as --slots)")
			o.Stall = 20 * time.Minute
			f.Var((*cli.Span)(&o.Stall), "stall", "let a message go elsewhere once nothing has moved for so long (0: never)")
			f.BoolVar(&o.GiveBack, "give-back", false, "give back what waits while the inbox is paused, in place of keeping it")
			f.Var(cli.Choice(&o.drainOn, drainOnTerm), "drain-on", "TERM: SIGTERM has it finish what it holds before it ends")
			o.begin(f)
			o.end(f)
			return func(args []string, s cli.Streams) error {
				o.Command, o.Persist = args, o.mode == modePersist
				if f.Changed("stream") || o.Subject == "" { // else the subject's
					o.Stream = o.stream
				}
				if err := o.check(f); err != nil {
					return cli.Usage(err)
				}
				o.s = s
				if err := o.run(); err != nil {
					return fmt.Errorf("agent: %w", err)
				}
				return nil
			}
		},
	}
}

func (o *agent) check(f *pflag.FlagSet) error {
	switch {
	case o.Inbox == "":
		return cli.ErrNoInbox
	case !o.noSession && len(o.Command) == 0:
		return errors.New("name the command that sessions run behind --, such as -- claude \"Read CLAUDE.md\", or say with --no-session that others work on the inbox")
	case o.noSession && (len(o.Command) > 0 || len(o.Launch) > 0 || f.Changed("mode")):
		return errors.New("--no-session runs no launcher: leave out the command, --launch and --mode")
	case o.Slots < 1 || o.Slots > maxSlots:
		return fmt.Errorf("--slots is %d: it takes 1 to %d", o.Slots, maxSlots)
	case len(o.Agent) > maxName:
		return fmt.Errorf("--name has %d bytes, and may have no more than %d", len(o.Agent), maxName)
	case !utf8.ValidString(o.Agent): // two such names may be one in a lease
		return fmt.Errorf("--name is %q, which is not UTF-8: choose another", o.Agent)
	}
	o.QueueDepth = cmp.Or(o.QueueDepth, o.Slots)
	var err error
	if o.Stream != "" {
		err = message.CheckStream(o.Stream)
	}
	if o.Subject != "" && o.Subject != ">" {
		err = errors.Join(err, setup.CheckSubject(o.Subject))
	}
	return errors.Join(err, o.server.Check(f))
}

func (o *agent) run() (err error) {
	runtime.GOMAXPROCS(1) // it waits for others, and a second thread that looks for work costs more than it does
	if o.Inbox, err = filepath.Abs(o.Inbox); err != nil {
		return err
	}
	if !o.noSession {
		// Take no message for a command that is not in PATH. A path may be relative to another folder.
		if name := o.Command[0]; !strings.Contains(name, "/") {
			if _, err := exec.LookPath(name); err != nil {
				return cli.Status(cli.ExitPerson, fmt.Errorf("the command of sessions, %q, is in no directory of PATH: name one that is there behind --", name))
			}
		}
		if o.Launcher, err = cli.Beside("heartbeat-launch"); err != nil {
			return err
		}
	}
	if o.Agent == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find a name for this agent: %w: give it one with --name", err)
		}
		o.Agent = strings.ToValidUTF8(host+"-"+filepath.Base(filepath.Dir(o.Inbox)), "\uFFFD")
	}
	// A session needs no password of the server, and what it reads may make it do anything.
	o.Environ = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, link.URLVariable+"=") && strings.Contains(v, "@")
	})
	o.Say, o.Out, o.Err = sayer(o.s, o.json), o.s.Out, o.s.Err
	if o.json {
		o.Out = o.s.Err
	}
	taken := signals.Catch()
	defer taken.Stop()
	if o.drainOn == drainOnTerm {
		taken.Spare()
	}
	o.Drain, o.End, o.Kill = taken.Warm(), taken.First(), taken.Second()
	begin, cancel := taken.Context() // until the agent runs, the first signal ends it
	defer cancel()
	go func(done <-chan struct{}) { // and so does a TERM that drains
		select {
		case <-taken.Warm():
			cancel()
		case <-done:
		}
	}(begin.Done())
	later, stop := taken.Context()
	defer stop()
	ended := false
	for again := true; again; again = errors.Is(err, link.ErrOver) {
		o.c, err = link.Connect(begin, &o.server, link.Options{
			Name: commandName + " agent " + o.Agent, Patient: true, Say: o.Say,
		})
		if ended = begin.Err() != nil; err == nil {
			ended, err = worker.Run(begin, o.c, o.Options)
			o.c.Close()
			begin = later // with a new connection an agent that drains continues
		} else if ended {
			err = nil
		}
	}
	if err == nil && ended {
		sig, _ := taken.Signal()
		return cli.Silent(cli.EndedBy{Signal: sig}.Status())
	}
	return err
}

// sayer returns a function that prints sentences with the time, to stderr or as JSON to stdout, from any goroutine.
func sayer(s cli.Streams, asJSON bool) func(string) {
	var mu sync.Mutex
	return func(sentence string) {
		mu.Lock()
		defer mu.Unlock()
		if asJSON {
			_ = cli.PrintJSON(s.Out, happening{time.Now().UTC(), sentence}) // nobody reads it any more
			return
		}
		s.Note("%s %s", words.Stamp(time.Now()), words.Line(sentence))
	}
}

// happening is a line of agent --json.
type happening struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}
