package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/command/history"
	"heartbeat/internal/words"
)

var demoPrompts = []string{
	"name the three states of an entry",
	"say in one sentence why the cursor waits for the answer\nand keep it short",
	"say goodbye",
}

const killedAt = 1 // the index of the prompt during whose answer the first session is killed

var demoVerb = cli.Verb{
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
	Build: func(f *pflag.FlagSet) cli.Action {
		d := &demo{deliveries: map[string]int{}, flying: -1}
		f.BoolVar(&d.claude, "claude", false, "use the real Claude Code on the PATH")
		f.BoolVar(&d.keep, "keep", false, "leave the workspace, and say where it is")
		f.BoolVar(&d.json, "json", false, "print the results as JSON lines, and nothing else")
		return func(args []string, s cli.Streams) error {
			d.Streams = s
			return d.run()
		}
	},
}

type demo struct {
	cli.Streams
	claude, keep, json bool
	self, dir          string
	box                *inbox.Inbox
	log                *history.Log
	ids                []string // of the entries, in the order of sending
	sessions           int
	deliveries         map[string]int // how often each entry was delivered
	flying             int            // the place of the prompt in flight, -1 for none
	since              time.Time      // when that was seen
}

func (d *demo) run() (err error) {
	ctx, stop := program.UntilSignal(0)
	defer stop()
	broken := make(chan os.Signal, 1) // a closed pipe must not leave the workspace behind
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	if d.self, err = os.Executable(); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if d.dir, err = os.MkdirTemp("", "heartbeat-demo-"); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() {
		if !d.keep && os.RemoveAll(d.dir) != nil { // a process that was just killed may be finishing a write
			err = errors.Join(err, os.RemoveAll(d.dir))
		}
	}()
	if err = d.show(ctx); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return wrap("demo", err)
}

func (d *demo) show(ctx context.Context) (err error) {
	client, err := d.client()
	if err != nil {
		return err
	}
	if d.box, err = inbox.Open(d.inboxPath(), inbox.Options{LockWait: cli.VerbLockWait}); err != nil {
		return err
	}
	if d.log, err = history.Follow(d.box); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.log.Close()) }()
	d.tell("inbox", "%s", d.box.Path())
	for i, text := range demoPrompts {
		r, err := d.box.Append(ctx, inbox.Message{Text: text}, cli.DefaultSettle)
		if err != nil {
			return err
		}
		d.ids = append(d.ids, r.ID)
		d.tell(fmt.Sprintf("sent %d", i+1), "%s", firstLine(text))
	}
	killed, err := d.session(ctx, client, "and the Stop hook hands it what waits", demoPrompts[killedAt])
	if err == nil && killed {
		_, err = d.session(ctx, client, "and its hook finds what the dead one left (--on-orphan retry)", "")
	}
	if err != nil {
		return err
	}
	return d.report(killed)
}

func (d *demo) inboxPath() string { return filepath.Join(d.dir, "inbox.jsonl") }

func (d *demo) say(format string, args ...any) { d.tell("", format, args...) }

// tell prints what happened, with the kind of event, if any, in its own column.
func (d *demo) tell(what, format string, args ...any) {
	if d.json {
		return
	}
	column := 13
	if what == "" {
		column = 0
	}
	for _, line := range layout.Wrap(fmt.Sprintf(format, args...), 80-column) {
		fmt.Fprintf(d.Out, "%-*s%s\n", column, what, line)
		what = ""
	}
}

const demoPoll = 20 * time.Millisecond

// session runs a session, and shows what becomes of the prompts. The session is killed once it has worked on the prompt
// hang for a while, unless hang is "" or the client is too fast.
func (d *demo) session(ctx context.Context, client demoClient, does, hang string) (killed bool, err error) {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	s, err := client.session(ctx, hang)
	if err != nil {
		return false, err
	}
	var output bytes.Buffer
	s.Stdout, s.Stderr, s.WaitDelay = &output, &output, 0
	if err := s.Start(); err != nil {
		return false, fmt.Errorf("start a session: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	d.sessions++
	d.say("")
	d.tell(fmt.Sprintf("session %d", d.sessions), "process %d starts, %s", s.Process.Pid, does)
	for !killed {
		select {
		case err := <-ended:
			if err = errors.Join(d.showNews(), sessionError(err, output.Bytes())); err != nil {
				return false, err
			}
			if hang == "" {
				d.tell("approved", "the inbox is empty, and the hook lets the session end")
			} else {
				d.tell("ended", "the session has answered all before it could be killed in the middle: run the demo again, or without --claude")
			}
			return false, nil
		case <-time.After(demoPoll):
		}
		err = d.showNews()
		killed = err != nil || hang != "" && d.flying >= killedAt && time.Since(d.since) >= client.headStart
	}
	kill() // as a crash or an operator would: the session can do nothing more
	<-ended
	if err = errors.Join(err, d.showNews()); err != nil {
		return false, err
	}
	if d.flying < 0 {
		return true, errors.New("nothing is in flight after the session was killed, where its entry should be")
	}
	d.tell("killed", "SIGKILL to process %d in the middle of answer %d: the prompt is in flight, and has no answer", s.Process.Pid, d.flying+1)
	return true, nil
}

func (d *demo) showNews() error {
	news, err := d.log.Next()
	for _, e := range news {
		place := slices.Index(d.ids, e.ID)
		switch e.Event {
		case history.Answered:
			d.flying = -1
			d.tell(fmt.Sprintf("answered %d", place+1), "%s", words.Brief(*e.Reply))
		case history.Delivered:
			d.flying, d.since = place, time.Now()
			again := ""
			if d.deliveries[e.ID]++; d.deliveries[e.ID] > 1 {
				again = " (again)"
			}
			d.tell(fmt.Sprintf("delivered %d", place+1), "%s%s", firstLine(demoPrompts[place]), again)
		}
	}
	return err
}

// report shows the results, and fails unless every prompt was answered once, in order.
func (d *demo) report(killed bool) error {
	var answered, lines []string
	_, err := history.Results(d.box).Each(0, func(r inbox.Result, line []byte) {
		answered, lines = append(answered, r.ID), append(lines, string(line)+"\n")
	})
	if err != nil {
		return err
	}
	if d.json {
		if _, err := io.WriteString(d.Out, strings.Join(lines, "")); err != nil {
			return fmt.Errorf("print the results: %w", err)
		}
	}
	if !slices.Equal(answered, d.ids) {
		return fmt.Errorf("not every prompt has one answer in its place: %d answers for %d prompts", len(answered), len(d.ids))
	}
	although := ""
	if killed {
		although = ", although a session was killed"
	}
	next := "What to type next, in a project of yours:\n  " + firstSteps("\n  ")
	if strings.Contains(d.self, string(filepath.Separator)+"go-build") {
		next = "Put the commands on your PATH first:\n  go install ./cmd/...\n\n" + next
	}
	d.say("\nEvery prompt was answered once, in order%s.\n\n%s", although, next)
	if d.keep {
		d.say("")
		d.tell("kept", "%s", d.dir)
	}
	return nil
}

func firstLine(s string) string {
	line, rest, _ := strings.Cut(s, "\n")
	if rest != "" {
		line += " ..."
	}
	return line
}
