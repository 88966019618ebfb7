package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/claude"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/machine/guardian"
)

// demoClient makes the sessions of a demo, each in its own process group, which a ^C at the terminal does not reach. A
// session is killed when its context ends.
type demoClient struct {
	// headStart is how long a session has had a prompt when it is killed. The real client writes its transcript with a
	// delay, and by then the prompt is in it.
	headStart time.Duration
	// session makes a session. The stand-in never answers the prompt hang, "" for none.
	session func(ctx context.Context, hang string) (*exec.Cmd, error)
}

func (d *demo) client() (c demoClient, err error) {
	if !d.claude {
		d.say("The agent of this demo is a stand-in, which needs no account and no network. " +
			"With --claude it is the real Claude Code.\n")
		return demoClient{100 * time.Millisecond, d.standIn}, nil
	}
	bin, err := exec.LookPath("claude")
	if err != nil {
		return c, fmt.Errorf("find Claude Code: %w: install it, or run the demo without --claude", err)
	}
	wired := filepath.Join(d.dir, "settings.json") // for these sessions alone
	wiring := settings.Blocking(d.self, demoHook(d.inboxPath()), 0)
	if _, err := settings.InstallFile(wired, wiring, settings.RefuseLinks).Write(); err != nil {
		return c, err
	}
	d.say("The agent of this demo is %s, with your account.\n", bin)
	return demoClient{time.Second, func(ctx context.Context, _ string) (*exec.Cmd, error) {
		cmd := guardian.Group(ctx, syscall.SIGKILL, bin, "-p", "Answer in one short sentence: are you ready?", "--settings", wired)
		cmd.Dir, cmd.Env = d.dir, claude.WithoutIdentity(os.Environ())
		return cmd, nil
	}}, nil
}

func demoHook(inbox string) []string {
	return []string{hook.FullVerb, "--inbox", inbox, "--on-orphan", "retry"}
}

func (d *demo) standIn(ctx context.Context, hang string) (*exec.Cmd, error) {
	transcript, err := os.CreateTemp(d.dir, "session-*.jsonl")
	if err != nil {
		return nil, fmt.Errorf("make a transcript: %w", err)
	}
	if err := transcript.Close(); err != nil {
		return nil, err
	}
	cmd := guardian.Group(ctx, syscall.SIGKILL, d.self, standInVerb, d.inboxPath(), transcript.Name(), hang)
	_, err = cmd.StdinPipe() // closed when this process ends
	return cmd, err
}

// sessionError returns the error of a session that was not killed, nil if it ended well.
func sessionError(err error, output []byte) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return fmt.Errorf("the session ended with %s: %s", exit, bytes.TrimSpace(output))
	}
	return fmt.Errorf("the session: %w", err)
}

// standInVerb runs a session of the demo's own agent, as a process that can be killed. No help lists it.
const standInVerb = "__session"

// runStandIn is the hidden verb: INBOX TRANSCRIPT HANG. It never answers the prompt HANG, and ends when its stdin is
// closed, so that it does not outlive the demo.
func runStandIn(args []string, s cli.Streams) int {
	if len(args) != 3 {
		s.Note("%s is a part of heartbeat demo: type heartbeat demo", standInVerb)
		return cli.ExitError
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, s.In) // an error ends it as well
		cancel()
	}()
	if err := standInSession(ctx, args[0], args[1], args[2]); err != nil {
		s.Complain(err)
		return cli.ExitError
	}
	return cli.ExitOK
}

// standInSession answers a prompt, and goes on while the hook hands it texts at the end of its turns.
func standInSession(ctx context.Context, inbox, transcript, hang string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	event := map[string]any{
		"hook_event_name": "Stop", "session_id": strings.TrimSuffix(filepath.Base(transcript), ".jsonl"),
		"prompt_id": "demo", "transcript_path": transcript, "stop_hook_active": false,
	}
	for text := "you are ready when this is answered"; ; event["stop_hook_active"] = true {
		if hang != "" && strings.Contains(text, hang) {
			<-ctx.Done()
		}
		event["last_assistant_message"] = fmt.Sprintf("understood, that was %d words", len(strings.Fields(text)))
		input, err := json.Marshal(event)
		if err != nil {
			return fmt.Errorf("the input of the hook: %w", err)
		}
		stop := exec.CommandContext(ctx, self, demoHook(inbox)...)
		stop.Env = append(claude.WithoutIdentity(os.Environ()), "CLAUDE_PID="+strconv.Itoa(os.Getpid()))
		stop.Stdin, stop.Stderr = bytes.NewReader(input), os.Stderr // the demo shows it if the session fails
		stdout, err := stop.Output()
		if err != nil {
			return fmt.Errorf("run the hook: %w", err)
		}
		if len(stdout) == 0 { // the hook lets the session end
			return nil
		}
		var decision struct{ Reason string }
		if err := json.Unmarshal(stdout, &decision); err != nil {
			return fmt.Errorf("the hook printed no decision: %w", err)
		}
		text = decision.Reason
	}
}
