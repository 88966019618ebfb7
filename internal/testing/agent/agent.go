// Package agent is a stand-in for Claude Code: a session that speaks the hook
// protocol with a real hook process and answers without a model. The demo and the
// tests use it to drain inboxes without the client.
package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"heartbeat/internal/machine"
)

// Agent is a session. Set its fields, then Run it.
type Agent struct {
	// Hook is the command that runs at every event, with its arguments.
	Hook []string
	// Env is the hook's environment; nil is this process's own.
	Env []string
	// Transcript is the file to which the session's turns are written as the client
	// does it, "" for none.
	Transcript string
	// SessionID is the session's id; "" draws one.
	SessionID string
	// Answer returns the reply to a text.
	Answer func(text string) string
	// Turn, if set, is called with each turn after its reply.
	Turn func(text, reply string)
	// Started, if set, is called with each hook process when it has started.
	Started func(event string, hook *os.Process)
	// Sits, if set, is called when the hook has approved a stop, and returns when the
	// session should end.
	Sits func()
	// Stderr, if set, gets the hook's messages to people.
	Stderr func(line string)

	promptID string
	blocks   bool // answers are written as the client does it, in blocks
}

// Unwritten is a word in a reply that never reaches the transcript, as when the client is
// ended before it has written it.
const Unwritten = "unwritten"

// Failing begins a reply that is none: the turn ends in an error of the API, whose name and
// message follow, as in "API-ERROR rate_limit: try again in 2 hours".
const Failing = "API-ERROR "

// Asking begins a reply that is none: the session asks a person first, with the kind and
// the text that follow, as in "ASKS permission_prompt: Claude needs your permission". The
// answer is asked for again after that.
const Asking = "ASKS "

// Run begins with a person's prompt, continues while the hook blocks the stop, and
// returns when the hook approves it.
func (a *Agent) Run(ctx context.Context, prompt string) (err error) {
	if a.SessionID == "" {
		if a.SessionID, err = machine.RandomName(); err != nil {
			return err
		}
	}
	if a.promptID, err = machine.RandomName(); err != nil {
		return err
	}
	if _, err := a.fire(ctx, map[string]any{"hook_event_name": "SessionStart", "source": "startup"}); err != nil {
		return err
	}
	if err = a.turnsOf(ctx, prompt); err == nil && a.Sits != nil {
		a.Sits()
	}
	_, endErr := a.fire(ctx, map[string]any{"hook_event_name": "SessionEnd", "reason": "other"})
	return errors.Join(err, endErr)
}

// turnsOf are the turns of one prompt: it goes on while the hook blocks the stop.
func (a *Agent) turnsOf(ctx context.Context, text string) error {
	if err := a.write("user", text, false); err != nil {
		return err
	}
	for active := false; ; active = true {
		reply, err := a.reply(ctx, text)
		if err != nil {
			return err
		}
		if failure, fails := strings.CutPrefix(reply, Failing); fails {
			name, message, _ := strings.Cut(failure, ": ")
			_, err = a.fire(ctx, map[string]any{"hook_event_name": "StopFailure", "error": name, "last_assistant_message": message})
			return err
		}
		if err := a.write("assistant", reply, false); err != nil {
			return err
		}
		if a.Turn != nil {
			a.Turn(text, reply)
		}
		next, err := a.fire(ctx, map[string]any{
			"hook_event_name": "Stop", "stop_hook_active": active, "last_assistant_message": reply,
		})
		if err != nil || next == "" {
			return err
		}
		text = next
		if err := a.write("user", "Stop hook feedback:\n"+text, true); err != nil {
			return err
		}
	}
}

// reply is the answer to a text, once everything was asked that is asked for it.
func (a *Agent) reply(ctx context.Context, text string) (string, error) {
	for {
		reply := a.Answer(text)
		question, asks := strings.CutPrefix(reply, Asking)
		if !asks {
			return reply, nil
		}
		kind, message, _ := strings.Cut(question, ": ")
		if _, err := a.fire(ctx, map[string]any{"hook_event_name": "Notification", "notification_type": kind, "message": message}); err != nil {
			return "", err
		}
	}
}

// fire runs the hook for one event, and returns the text that it delivers, if any.
func (a *Agent) fire(ctx context.Context, event map[string]any) (string, error) {
	cmd, out, stderr, err := a.command(ctx, event)
	if err != nil {
		return "", err
	}
	err = cmd.Start()
	if err == nil {
		if a.Started != nil {
			a.Started(event["hook_event_name"].(string), cmd.Process)
		}
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("agent: run the hook %s: %w: %s", a.Hook[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	for line := range bytes.Lines(stderr.Bytes()) {
		if a.Stderr != nil {
			a.Stderr(string(bytes.TrimSpace(line)))
		}
	}
	return decision(out.Bytes())
}

// command prepares the hook for one event, and collects what it prints.
func (a *Agent) command(ctx context.Context, event map[string]any) (cmd *exec.Cmd, out, stderr *bytes.Buffer, err error) {
	event["session_id"], event["prompt_id"], event["transcript_path"] = a.SessionID, a.promptID, a.Transcript
	input, err := json.Marshal(event)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("agent: %w", err)
	}
	out, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd = exec.CommandContext(ctx, a.Hook[0], a.Hook[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: a.Sits != nil} // the client's hooks run in sessions of their own
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = a.Env, bytes.NewReader(input), out, stderr
	return cmd, out, stderr, nil
}

func decision(stdout []byte) (string, error) {
	if len(bytes.TrimSpace(stdout)) == 0 {
		return "", nil
	}
	var d struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
		Output   struct {
			Context string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(stdout, &d); err != nil {
		return "", fmt.Errorf("agent: the hook printed no decision: %w", err)
	}
	if d.Decision == "block" {
		return d.Reason, nil
	}
	return d.Output.Context, nil
}

// write adds a line to the transcript in the client's format.
func (a *Agent) write(role, text string, meta bool) (err error) {
	if a.Transcript == "" || role == "assistant" && strings.Contains(text, Unwritten) {
		return nil
	}
	var content any = text
	if role == "assistant" && a.blocks {
		content = []any{map[string]any{"type": "text", "text": text}}
	}
	line, err := json.Marshal(map[string]any{
		"type": role, "sessionId": a.SessionID, "isMeta": meta,
		"message": map[string]any{"role": role, "content": content},
	})
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	f, err := os.OpenFile(a.Transcript, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
