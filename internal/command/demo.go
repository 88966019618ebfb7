package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/disk"
)

var demoPrompts = []string{
	"name the three states of an entry",
	"say in one sentence why the cursor waits for the answer\nand keep it short",
	"say goodbye",
}

// killedAt is the index of the prompt during whose answer the first session is killed.
const killedAt = 1

func demoVerb() cli.Verb {
	return cli.Verb{
		Name:  "demo",
		Short: "see three prompts answered although a session is killed",
		Long: `Send three prompts to an inbox in a scratch workspace, and have an agent work
through them, with this very command as its Stop hook. The first session is killed
in the middle of an answer; the next one has that prompt delivered again, and
answers it and the rest. The agent is a stand-in built into the command, which needs
no account; with --claude it is the real Claude Code on the PATH, with your account,
which spends a few tokens.

The workspace is removed at the end, unless --keep is given.`,
		Example: `heartbeat demo
heartbeat demo --claude --keep`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			d := &demo{shown: map[string]demoState{}}
			f := cli.NewFlags("demo")
			f.BoolVar(&d.claude, "claude", false, "use the real Claude Code on the PATH")
			f.BoolVar(&d.keep, "keep", false, "leave the workspace, and say where it is")
			f.BoolVar(&d.json, "json", false, "print the results as JSON lines, and nothing else")
			return f, func(args []string, s cli.Streams) error {
				if err := cli.NoArgs(args); err != nil {
					return err
				}
				d.Streams = s
				return d.run()
			}
		},
	}
}

// demo is one run of the verb.
type demo struct {
	cli.Streams
	claude, keep, json bool
	self, dir          string
	box                *inbox.Inbox
	ids                []string // of the entries, in the order in which they were sent
	shown              map[string]demoState
}

func (d *demo) run() (err error) {
	ctx, stop := endOnSignal(context.Background())
	defer stop()
	broken := make(chan os.Signal, 1) // a reader that goes away must not leave the workspace behind
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	if d.self, err = os.Executable(); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if d.dir, err = os.MkdirTemp("", "heartbeat-demo-"); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() {
		if !d.keep {
			err = errors.Join(err, removeAll(d.dir))
		}
	}()
	if err = d.show(ctx); err == nil {
		return nil
	}
	err = fmt.Errorf("demo: %w", err)
	var by cli.EndedBy
	if errors.As(context.Cause(ctx), &by) {
		return cli.Status(by.Status(), fmt.Errorf("demo: %w", by))
	}
	return err
}

// removeAll tries again if a process that was just killed is still finishing a write.
func removeAll(dir string) (err error) {
	for range 3 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
	}
	return err
}

// show runs the demo in its workspace.
func (d *demo) show(ctx context.Context) (err error) {
	client, err := d.client()
	if err != nil {
		return err
	}
	if d.box, err = inbox.Open(filepath.Join(d.dir, "inbox.jsonl"), inbox.Options{LockWait: cli.VerbLockWait}); err != nil {
		return err
	}
	if err := d.fill(ctx); err != nil {
		return err
	}
	if err := d.firstSession(ctx, client); err != nil {
		return err
	}
	if err := d.lastSession(ctx, client); err != nil {
		return err
	}
	return d.report()
}

func (d *demo) say(format string, args ...any) {
	if d.json {
		return
	}
	for _, line := range layout.Wrap(fmt.Sprintf(format, args...), demoWidth) {
		fmt.Fprintln(d.Out, line)
	}
}

// tell prints what happened, with the kind of event in a column of its own.
func (d *demo) tell(what, format string, args ...any) {
	if d.json {
		return
	}
	for _, line := range layout.Wrap(fmt.Sprintf(format, args...), demoWidth-demoColumn) {
		fmt.Fprintf(d.Out, "%-*s%s\n", demoColumn, what, line)
		what = ""
	}
}

const (
	demoWidth  = 80
	demoColumn = 13
)

func (d *demo) fill(ctx context.Context) error {
	d.tell("inbox", "%s", d.box.Path())
	for i, text := range demoPrompts {
		r, err := d.box.Append(ctx, inbox.Message{Text: text}, cli.DefaultSettle)
		if err != nil {
			return err
		}
		d.ids = append(d.ids, r.ID)
		d.tell(fmt.Sprintf("sent %d", i+1), "%s", firstLine(text))
	}
	return nil
}

// firstSession runs a session and kills it in the middle of an answer.
func (d *demo) firstSession(ctx context.Context, client demoClient) error {
	s, err := client.start(demoPrompts[killedAt])
	if err != nil {
		return err
	}
	d.say("")
	d.tell("session 1", "process %d starts, and the Stop hook hands it what waits", s.pid())
	ended, err := d.watch(ctx, s, func(place int) bool { return place >= killedAt && s.isBusy() })
	if err != nil {
		return errors.Join(err, s.end())
	}
	if ended { // the client is too fast, or does not work at all
		if err := s.failure(); err != nil {
			return err
		}
		d.tell("ended", "the session was too fast to be killed in the middle")
		return nil
	}
	if err := s.kill(); err != nil {
		return err
	}
	in, err := d.inFlight()
	switch {
	case err != nil:
		return err
	case in == nil:
		return errors.New("nothing is in flight after the session was killed, where its entry should be")
	}
	d.tell("killed", "SIGKILL to process %d in the middle of answer %d: the prompt is in flight, and has no answer", s.pid(), d.place(in.ID())+1)
	return nil
}

// lastSession runs a session that works through what the first one left.
func (d *demo) lastSession(ctx context.Context, client demoClient) error {
	s, err := client.start("")
	if err != nil {
		return err
	}
	d.say("")
	d.tell("session 2", "process %d starts, and its hook finds what the dead one left (--on-orphan retry)", s.pid())
	if _, err := d.watch(ctx, s, nil); err != nil {
		return errors.Join(err, s.end())
	}
	if err := s.failure(); err != nil {
		return err
	}
	d.tell("approved", "the inbox is empty, and the hook lets the session end")
	return nil
}

// report shows the results, and fails unless every prompt was answered once, in order.
func (d *demo) report() error {
	answered, err := d.results()
	if err != nil {
		return err
	}
	if d.json {
		text, err := disk.ReadState(d.box.ResultsPath(), disk.MaxWhole)
		if err != nil {
			return err
		}
		if _, err := d.Out.Write(text); err != nil {
			return fmt.Errorf("print the results: %w", err)
		}
	}
	for i, id := range d.ids {
		if i >= len(answered) || answered[i].ID != id {
			return fmt.Errorf("prompt %d has no answer in its place: %d answers for %d prompts", i+1, len(answered), len(d.ids))
		}
	}
	if len(answered) != len(d.ids) {
		return fmt.Errorf("%d answers for %d prompts", len(answered), len(d.ids))
	}
	d.say("\nEvery prompt was answered once, in order, although a session was killed.\n\n%s", d.next())
	if d.keep {
		d.say("")
		d.tell("kept", "%s", d.dir)
	}
	return nil
}

// next is what to type after the demo.
func (d *demo) next() string {
	text := `What to type next, in a project of yours:
  heartbeat install --inbox work/inbox.jsonl
  heartbeat send --inbox work/inbox.jsonl "summarise the open issues"
  claude "Read CLAUDE.md"
  heartbeat results --inbox work/inbox.jsonl`
	if strings.Contains(d.self, string(filepath.Separator)+"go-build") {
		text = "Put the commands on your PATH first:\n  go install ./cmd/...\n\n" + text
	}
	return text
}

func firstLine(s string) string {
	line, rest, _ := strings.Cut(s, "\n")
	if rest != "" {
		line += " ..."
	}
	return line
}

// demoPoll is how often the demo looks at the inbox.
const demoPoll = 20 * time.Millisecond
