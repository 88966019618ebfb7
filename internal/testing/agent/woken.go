package agent

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"heartbeat/internal/machine"
)

// exitWakes is the exit status with which a background hook wakes the session.
const exitWakes = 2

// announcement is how the client passes on what woke it.
const announcement = "<task-notification>\n<summary>A background hook</summary>\n</task-notification>\n" +
	"<system-reminder>\nStop hook blocking error from command \"Stop\": %s</system-reminder>"

// RunWoken begins with a person's prompt and then sits at its prompt: SessionStart and
// Stop start hooks in the background, and each text that a hook wakes it with is another
// turn. It returns when quit is closed.
func (a *Agent) RunWoken(ctx context.Context, prompt string, quit <-chan struct{}) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the waiting hook
	if a.SessionID == "" {
		if a.SessionID, err = machine.RandomName(); err != nil {
			return err
		}
	}
	woken := make(chan string)
	if err := a.fireBehind(ctx, map[string]any{"hook_event_name": "SessionStart", "source": "startup"}, woken); err != nil {
		return err
	}
	for text := prompt; ; {
		if err := a.wokenTurn(ctx, text, woken); err != nil {
			return err
		}
		select {
		case said := <-woken:
			text = fmt.Sprintf(announcement, said)
		case <-quit:
			_, err := a.fire(ctx, map[string]any{"hook_event_name": "SessionEnd", "reason": "other"})
			return err
		}
	}
}

func (a *Agent) wokenTurn(ctx context.Context, text string, woken chan<- string) (err error) {
	if a.promptID, err = machine.RandomName(); err != nil {
		return err
	}
	if _, err := a.fire(ctx, map[string]any{"hook_event_name": "UserPromptSubmit", "prompt": text}); err != nil {
		return err
	}
	reply, err := a.reply(ctx, text)
	if err != nil {
		return err
	}
	if failure, fails := strings.CutPrefix(reply, Failing); fails {
		name, message, _ := strings.Cut(failure, ": ")
		return a.fireBehind(ctx, map[string]any{"hook_event_name": "StopFailure", "error": name, "last_assistant_message": message}, woken)
	}
	if a.Turn != nil {
		a.Turn(text, reply)
	}
	return a.fireBehind(ctx, map[string]any{
		"hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": reply,
	}, woken)
}

// fireBehind starts the hook for one event in the background, and passes on the text with
// which it wakes the session.
func (a *Agent) fireBehind(ctx context.Context, event map[string]any, woken chan<- string) error {
	cmd, _, stderr, err := a.command(ctx, event)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("agent: run the hook %s: %w", a.Hook[0], err)
	}
	go func() {
		var exit *exec.ExitError
		if err := cmd.Wait(); errors.As(err, &exit) && exit.ExitCode() == exitWakes {
			select {
			case woken <- stderr.String():
			case <-ctx.Done():
			}
		}
	}()
	return nil
}
