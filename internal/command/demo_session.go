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

// How long a session has had a prompt when it is killed. The real client writes its transcript with a delay, and by
// then the prompt is in it. The stand-in never answers that prompt.
const (
	claudeHeadStart  = time.Second
	standInHeadStart = 100 * time.Millisecond
)

// startSession starts a session. The demo kills the session while it works on the prompt hang, which the stand-in
// therefore never answers. hang is "" for a session that is not to be killed.
type startSession func(hang string) (*demoSession, error)

func (d *demo) client() (startSession, error) {
	if !d.claude {
		d.say("The agent of this demo is a stand-in, which needs no account and no network. " +
			"With --claude it is the real Claude Code.\n")
		return d.standIn, nil
	}
	bin, err := exec.LookPath("claude")
	if err != nil {
		return nil, fmt.Errorf("find Claude Code: %w: install it, or run the demo without --claude", err)
	}
	wired := filepath.Join(d.dir, "settings.json") // for these sessions alone
	wiring := settings.Blocking(d.self, demoHook(d.inboxPath()), 0)
	if _, err := settings.InstallFile(wired, wiring, settings.RefuseLinks).Write(); err != nil {
		return nil, err
	}
	d.say("The agent of this demo is %s, with your account.\n", bin)
	return func(string) (*demoSession, error) {
		cmd := exec.Command(bin, "-p", "Answer in one short sentence: are you ready?", "--settings", wired)
		cmd.Dir, cmd.Env = d.dir, claude.WithoutIdentity(os.Environ())
		return runSession(cmd, claudeHeadStart)
	}, nil
}

func demoHook(inbox string) []string {
	return []string{hook.FullVerb, "--inbox", inbox, "--on-orphan", "retry"}
}

func (d *demo) standIn(hang string) (*demoSession, error) {
	transcript, err := os.CreateTemp(d.dir, "session-*.jsonl")
	if err != nil {
		return nil, fmt.Errorf("make a transcript: %w", err)
	}
	if err := transcript.Close(); err != nil {
		return nil, err
	}
	cmd := exec.Command(d.self, standInVerb, d.inboxPath(), transcript.Name(), hang)
	if _, err := cmd.StdinPipe(); err != nil { // it ends with this process, which holds the other end
		return nil, err
	}
	return runSession(cmd, standInHeadStart)
}

// demoSession is a session in its own process group, which a ^C at the terminal does not reach: the demo ends it.
type demoSession struct {
	cmd       *exec.Cmd
	output    bytes.Buffer
	headStart time.Duration
	ended     chan struct{} // closed once it has ended, with err set
	err       error
}

func runSession(cmd *exec.Cmd, headStart time.Duration) (*demoSession, error) {
	s := &demoSession{cmd: cmd, headStart: headStart, ended: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a session: %w", err)
	}
	go func() {
		defer close(s.ended)
		s.err = cmd.Wait()
	}()
	return s, nil
}

func (s *demoSession) pid() int { return s.cmd.Process.Pid }

// kill kills the session as a crash or an operator would: no process of it can say anything.
func (s *demoSession) kill() error {
	if err := guardian.SignalGroup(s.pid(), syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the session: %w", err)
	}
	<-s.ended
	return nil
}

func (s *demoSession) failure() error {
	if s.err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(s.err, &exit) {
		return fmt.Errorf("the session: %w", s.err)
	}
	return fmt.Errorf("the session ended with %s: %s", exit, bytes.TrimSpace(s.output.Bytes()))
}

// standInVerb runs a session of the demo's own agent, as a process that can be killed. No help lists it.
const standInVerb = "__session"

// runStandIn is the hidden verb: INBOX TRANSCRIPT HANG. It ends with its stdin, so that it does not outlive the
// demo, and never answers the prompt HANG.
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
