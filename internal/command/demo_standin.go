package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/testing/agent"
)

// standInVerb runs a session of the demo's own agent, as a process that can be killed. It
// is listed nowhere.
const standInVerb = "__session"

// demoStandIn starts sessions of the agent that is built into the command.
type demoStandIn struct {
	self, inbox, transcripts string
	sessions                 int
}

func newDemoStandIn(d *demo) (demoClient, error) {
	d.say("The agent of this demo is a stand-in, which needs no account and no network. " +
		"With --claude it is the real Claude Code.\n")
	return &demoStandIn{self: d.self, inbox: filepath.Join(d.dir, "inbox.jsonl"), transcripts: d.dir}, nil
}

func (c *demoStandIn) start(hang string) (*demoSession, error) {
	c.sessions++
	transcript := filepath.Join(c.transcripts, fmt.Sprintf("session-%d.jsonl", c.sessions))
	cmd := exec.Command(c.self, standInVerb, c.inbox, transcript, hang)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s, err := startSession(cmd)
	if err != nil {
		return nil, err
	}
	s.held, s.busy = stdin, firstLineOf(stdout)
	return s.await(), nil
}

// runStandIn is the hidden verb: INBOX TRANSCRIPT HANG. It ends when its stdin does, so
// that it does not outlive the demo. At the prompt HANG it prints a line, and never
// answers.
func runStandIn(args []string, s cli.Streams) int {
	if len(args) != 3 {
		s.Note("%s is a part of heartbeat demo: type heartbeat demo", standInVerb)
		return cli.ExitError
	}
	self, err := os.Executable()
	if err != nil {
		s.Complain(err)
		return cli.ExitError
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, s.In) // an error ends it as well
		cancel()
	}()
	a := agent.Agent{
		Hook:       []string{self, hook.FullVerb, "--inbox", args[0], "--on-orphan", "retry"},
		Env:        append(claude.WithoutIdentity(os.Environ()), "CLAUDE_PID="+strconv.Itoa(os.Getpid())),
		Transcript: args[1],
		Answer: func(text string) string {
			if args[2] != "" && strings.Contains(text, args[2]) {
				fmt.Fprintln(s.Out, "answering")
				<-ctx.Done()
			}
			return fmt.Sprintf("understood, that was %d words", len(strings.Fields(text)))
		},
	}
	if err := a.Run(ctx, "you are ready when this is answered"); err != nil {
		s.Complain(err)
		return cli.ExitError
	}
	return cli.ExitOK
}
