package command

import (
	"context"
	"errors"
	"fmt"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/agent"
)

var demoPrompts = []string{
	"name the three states of an entry",
	"explain in one sentence why the cursor waits for the answer\nand keep it short",
	"say goodbye",
}

func demoVerb() cli.Verb {
	return cli.Verb{
		Name:  "demo",
		Short: "drain three prompts in a scratch workspace",
		Long: `Send three prompts to an inbox in a scratch workspace, and have an agent work
through them, with this very command as its Stop hook. The agent is a stand-in
built into the command; with --claude it is the real Claude Code on the PATH,
with your account, which spends a few tokens.

The workspace is removed at the end, unless --keep is given.`,
		Example: `heartbeat demo
heartbeat demo --claude --keep`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			d := &demo{}
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
}

func (d *demo) run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if d.self, err = os.Executable(); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if d.dir, err = os.MkdirTemp("", "heartbeat-demo-"); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() {
		if !d.keep {
			err = errors.Join(err, os.RemoveAll(d.dir))
		}
	}()
	box, err := inbox.Open(filepath.Join(d.dir, "inbox.jsonl"), inbox.Options{LockWait: cli.VerbLockWait})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if err := d.fill(ctx, box); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if d.claude {
		err = d.drainWithClaude(ctx, box)
	} else {
		err = d.drainWithStandIn(ctx, box)
	}
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return d.report(box)
}

func (d *demo) say(format string, args ...any) {
	if !d.json {
		fmt.Fprintf(d.Out, format+"\n", args...)
	}
}

func (d *demo) fill(ctx context.Context, box *inbox.Inbox) error {
	d.say("workspace  %s", d.dir)
	for _, text := range demoPrompts {
		r, err := box.Append(ctx, inbox.Message{Text: text}, cli.DefaultSettle)
		if err != nil {
			return err
		}
		d.say("sent       %s  %s", r.ID[:8], firstLine(text))
	}
	return nil
}

func (d *demo) drainWithStandIn(ctx context.Context, box *inbox.Inbox) error {
	turn := 0
	a := agent.Agent{
		Hook:       []string{d.self, hook.FullVerb, "--inbox", box.Path()},
		Transcript: filepath.Join(d.dir, "transcript.jsonl"),
		Answer: func(text string) string {
			return fmt.Sprintf("understood, that was %d words", len(strings.Fields(text)))
		},
		Turn: func(text, reply string) {
			if turn++; turn == 1 {
				d.say("\nthe session starts with %q; from then on the Stop hook speaks\n", text)
				return
			}
			d.say("delivered  %s\nreply      %s\n", strings.ReplaceAll(text, "\n", "\n           "), reply)
		},
		Stderr: func(line string) { d.say("hook       %s", line) },
	}
	return a.Run(ctx, "you are ready when this is answered")
}

// report shows the results, and fails where something was not answered.
func (d *demo) report(box *inbox.Inbox) error {
	results, err := disk.ReadState(box.ResultsPath(), disk.MaxWhole)
	if err != nil {
		return fmt.Errorf("demo: nothing was answered: %w", err)
	}
	d.say("results    %s", filepath.Base(box.ResultsPath()))
	fmt.Fprint(d.Out, string(results))
	if n := strings.Count(string(results), "\n"); n != len(demoPrompts) {
		return fmt.Errorf("demo: %d of %d prompts were answered", n, len(demoPrompts))
	}
	d.say("\nevery prompt was answered once, in order; the stop was approved when the inbox was empty")
	if d.keep {
		d.say("kept       %s", d.dir)
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
