package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/agent"
	"heartbeat/internal/fleet/claims"
	"heartbeat/internal/fleet/layout"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/link/target"
	"heartbeat/internal/fleet/page"
	"heartbeat/internal/fleet/settle"
	"heartbeat/internal/host/signals"
	"heartbeat/internal/words"
)

// runAgent runs one agent.
func runAgent(o *page.Agent, s cli.Streams) (err error) {
	if o.Inbox, err = filepath.Abs(o.Inbox); err != nil {
		return err
	}
	launcher := ""
	if !o.NoSession {
		if err := findCommand(o.Command[0]); err != nil {
			return err
		}
		if launcher, err = cli.Beside("heartbeat-launch"); err != nil {
			return err
		}
	}
	name, err := agentName(o)
	if err != nil {
		return err
	}
	taken := signals.Take()
	defer taken.Stop()
	requests := requestsOf(taken, o.DrainsOnTerm())
	say := sayer(s, o.JSON)
	ctx, cancel := untilFirst(taken)
	defer cancel()
	c, err := link.Connect(ctx, &o.Link, link.Options{
		Name: page.CommandName + " agent " + name, Patient: true, Say: say,
		Back: func(time.Duration) { requests.add(agent.Back) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var options agent.Options
	if err := c.Patiently(ctx, func() (err error) {
		options, err = agentOptions(ctx, o, c, name)
		return err
	}); err != nil {
		return err
	}
	// A signal ends an agent that waits for the server before it has begun.
	options.Patiently = func(do func() error) error { return c.Patiently(ctx, do) }
	options.Launcher, options.Requests, options.Say = launcher, requests.c, say
	options.Out, options.Err, options.Environ = s.Out, s.Err, sessionEnvironment(os.Environ())
	if o.JSON {
		options.Out = s.Err
	}
	err = agent.Run(context.Background(), options)
	return agentEnded(err, taken, o.DrainsOnTerm())
}

// statusSetUp is the exit status where sessions cannot be run, as of heartbeat-launch.
const statusSetUp = 78

// findCommand refuses a command that is in no directory of PATH before a message is taken for
// it. A path is left to the launcher, which may run it in another directory.
func findCommand(name string) error {
	if strings.Contains(name, "/") {
		return nil
	}
	if _, err := exec.LookPath(name); err != nil {
		return cli.Status(statusSetUp, fmt.Errorf("the command of sessions, %q, is in no directory of PATH: name one that is there behind --", name))
	}
	return nil
}

// agentName is the agent's name, by default that of the machine and of the inbox's folder.
func agentName(o *page.Agent) (string, error) {
	if o.Name != "" {
		return o.Name, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("find a name for this agent: %w: give it one with --name", err)
	}
	return host + "-" + filepath.Base(filepath.Dir(o.Inbox)), nil
}

func agentOptions(ctx context.Context, o *page.Agent, c *link.Conn, name string) (agent.Options, error) {
	stream, subject := o.Stream, o.Subject
	if subject == "" {
		subject = ">"
	}
	var err error
	if stream == "" {
		if stream, err = layout.StreamFor(ctx, c.JS, subject); err != nil {
			return agent.Options{}, err
		}
	}
	l, err := layout.Open(ctx, c.JS, stream)
	if err != nil {
		return agent.Options{}, err
	}
	up, err := settle.New(c.JS, stream)
	if err != nil {
		return agent.Options{}, err
	}
	return agent.Options{
		Binding: claims.Binding{Agent: name, Stream: stream, Subject: subject},
		Inbox:   o.Inbox,
		Bind: func(ctx context.Context) (jetstream.Consumer, string, error) {
			return layout.Consumer(ctx, c.JS, stream, subject)
		},
		MaxDeliver: func(i *jetstream.ConsumerInfo) int { return layout.MaxDeliver(&i.Config) },
		Upstream:   up, Agents: l.Agents, Connected: func() bool { return c.State().Connected },
		Others: func(ctx context.Context) ([]string, error) { return layout.Present(ctx, c.JS, stream) },
		Launch: o.Launch, Command: o.Command, Persist: o.Mode == page.ModePersist, Orphan: o.Orphan,
		Slots: o.Slots, QueueDepth: o.QueueDepth, Stall: o.Stall, GiveBack: o.GiveBack,
	}, nil
}

// agentEnded is the error of an agent that has ended.
func agentEnded(err error, taken *signals.Taken, drains bool) error {
	var wrong *agent.LauncherError
	sig, _ := taken.Signal()
	switch {
	case errors.As(err, &wrong):
		return cli.Status(wrong.Status, err)
	case err != nil || sig == 0:
		return err
	case drains && sig == syscall.SIGTERM && !isDone(taken.Second()):
		return nil // it has drained
	}
	return cli.Told(cli.EndedBy{Signal: sig}.Status())
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// untilFirst is a context that ends with the first signal, for what is done before the agent
// runs.
func untilFirst(taken *signals.Taken) (context.Context, context.CancelFunc) { return taken.Context() }

// requests are what signals and the connection ask of the agent.
type requests struct{ c chan agent.Request }

// add asks for something, unless so much is asked for already that it makes no difference.
func (r requests) add(what agent.Request) {
	select {
	case r.c <- what:
	default:
	}
}

// requestsOf turns signals into requests: the first one ends the agent, or has it drain,
// and the second one ends it at once, or ends it.
func requestsOf(taken *signals.Taken, drains bool) requests {
	r := requests{make(chan agent.Request, 16)}
	go func() {
		<-taken.First()
		first, second := agent.End, agent.Kill
		if sig, _ := taken.Signal(); drains && sig == syscall.SIGTERM {
			first, second = agent.Drain, agent.End
		}
		r.c <- first
		<-taken.Second()
		r.c <- second
	}()
	return r
}

// sayer prints a line with the time for each sentence, from any goroutine: on stderr, or
// as JSON on stdout.
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

// sessionEnvironment leaves out how the agent connects, if that has a password or a token:
// a session needs none, and what it reads may have it do anything.
func sessionEnvironment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return strings.HasPrefix(v, target.URLVariable+"=") && strings.Contains(v, "@")
	})
}
