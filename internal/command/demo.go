package command

import (
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
	"heartbeat/internal/command/history"
	"heartbeat/internal/words"
)

var demoPrompts = []string{
	"name the three states of an entry",
	"say in one sentence why the cursor waits for the answer\nand keep it short",
	"say goodbye",
}

// killedAt is the index of the prompt during whose answer the first session is killed.
const killedAt = 1

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
		d := &demo{told: map[string]int{}, flying: -1}
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
	ids                []string       // of the entries, in the order of sending
	told               map[string]int // how often each entry's delivery was shown
	flying             int            // the place of the prompt in flight, -1 for none
	since              time.Time      // when that was seen
}

func (d *demo) run() (err error) {
	ctx, stop := endOnSignal()
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
	return failed("demo", err)
}

func (d *demo) show(ctx context.Context) (err error) {
	start, err := d.client()
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
	killed, err := d.firstSession(ctx, start)
	if err == nil && killed {
		err = d.lastSession(ctx, start)
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

func (d *demo) firstSession(ctx context.Context, start startSession) (killed bool, err error) {
	s, err := start(demoPrompts[killedAt])
	if err != nil {
		return false, err
	}
	d.say("")
	d.tell("session 1", "process %d starts, and the Stop hook hands it what waits", s.pid())
	ended, err := d.watch(ctx, s, true)
	if err != nil {
		return false, err
	}
	if ended { // the client is too fast
		d.tell("ended", "the session has answered all before it could be killed in the middle: run the demo again, or without --claude")
		return false, nil
	}
	if err := errors.Join(s.kill(), d.look()); err != nil {
		return false, err
	}
	if d.flying < 0 {
		return true, errors.New("nothing is in flight after the session was killed, where its entry should be")
	}
	d.tell("killed", "SIGKILL to process %d in the middle of answer %d: the prompt is in flight, and has no answer", s.pid(), d.flying+1)
	return true, nil
}

func (d *demo) lastSession(ctx context.Context, start startSession) error {
	s, err := start("")
	if err != nil {
		return err
	}
	d.say("")
	d.tell("session 2", "process %d starts, and its hook finds what the dead one left (--on-orphan retry)", s.pid())
	if _, err := d.watch(ctx, s, false); err != nil {
		return err
	}
	d.tell("approved", "the inbox is empty, and the hook lets the session end")
	return nil
}

const demoPoll = 20 * time.Millisecond

// watch shows what becomes of the prompts until the session has ended, or, with toKill, until it has worked on the
// chosen prompt for a while. After an error the session has ended, too.
func (d *demo) watch(ctx context.Context, s *demoSession, toKill bool) (ended bool, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.kill())
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-s.ended:
			return true, errors.Join(d.look(), s.failure())
		case <-time.After(demoPoll):
		}
		if err := d.look(); err != nil || toKill && d.flying >= killedAt && time.Since(d.since) >= s.headStart {
			return false, err
		}
	}
}

// look shows what is new in the inbox.
func (d *demo) look() error {
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
			if d.told[e.ID]++; d.told[e.ID] > 1 {
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
