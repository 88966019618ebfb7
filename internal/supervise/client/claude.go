package client

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/internal/claude"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/disk"
	"heartbeat/internal/screen"
)

var claudeCode = Client{
	Name: "claude", Title: "Claude Code", Begin: `claude "Read CLAUDE.md"`,
	Check: checkClaude, Command: claudeCommand,
	Recognise: RecogniseClaude, Advice: claudeAdvice, Retrying: claudeRetrying, LastWords: screen.LastLine,
	TooOld: claudeTooOld, Waits: claudeWaits, Unwired: claudeUnwired,
}

// claudeWaits is how long a session under -p waits for tasks.
func claudeWaits(background time.Duration) string {
	if background <= 0 {
		return ""
	}
	return fmt.Sprintf("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS=%d", background.Milliseconds())
}

func checkClaude(w Wishes) error {
	if arg := printFlag(w.Command[1:]); w.Persist && arg != "" {
		return fmt.Errorf("--mode persist needs an interactive session, and with %s the client's ends with its turn: leave it out", arg)
	}
	return nil
}

// printFlag is the argument by which a session ends with its turn, "" for none.
func printFlag(args []string) string {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	for _, arg := range args {
		if arg == "-p" || arg == "--print" {
			return arg
		}
	}
	return ""
}

// claudeCommand writes the settings that wire the hook for one session. Settings that the
// command names are a part of them.
func claudeCommand(_ context.Context, s Session) ([]string, error) {
	args, given := settings.TakeFlag(s.Command[1:])
	text, err := settings.ReadFlag(given, s.Dir)
	if err != nil {
		return nil, fmt.Errorf("settings of the session: --settings of the command: %w", err)
	}
	if off := settings.SwitchedOffBy(s.Env, s.Dir, text); off != nil {
		return nil, errors.New("a session would ask for nothing: " + off.String())
	}
	path := filepath.Join(s.Private, SettingsName)
	if text, err = settings.Install(text, claudeWiring(s, path)); err != nil {
		return nil, fmt.Errorf("settings of the session: %w", err)
	}
	if err := disk.Publish(path, text, false); err != nil {
		return nil, fmt.Errorf("write the settings of the session: %w", err)
	}
	command := []string{s.Command[0], "--settings", path}
	tools, err := claudeTools(s)
	if err != nil {
		return nil, err
	}
	command = append(command, tools...)
	if s.Resume != "" {
		command = append(command, "--resume", s.Resume)
	}
	return append(command, args...), nil
}

func claudeWiring(s Session, path string) settings.Wiring {
	wired := settings.Blocking(s.Hook, s.Args, 0)
	if s.Persist {
		wired = settings.Waking(s.Hook, append(slices.Clone(s.Args), "--rewake"))
	}
	if s.Meter != "" {
		// The session's settings have precedence over the others, so its status line shows
		// the one that a person set up there.
		below, _ := settings.Shown(settings.Below(settings.FilesOf(s.Env, s.Dir), path))
		wired.Meter = &settings.Meter{Command: s.Meter, Below: below}
	}
	return wired
}

// claudeTools writes what wires the tools of an agent for one session, beside the settings,
// and returns the arguments for that. Each is one word: what follows is the command's own.
func claudeTools(s Session) ([]string, error) {
	if s.Tools == "" {
		return nil, nil
	}
	text, err := settings.InstallServer(nil, agentTools(s.Tools, s.Inbox))
	if err != nil {
		return nil, fmt.Errorf("tools of the session: %w", err)
	}
	path := filepath.Join(s.Private, ToolsName)
	if err := disk.Publish(path, text, false); err != nil {
		return nil, fmt.Errorf("write the tools of the session: %w", err)
	}
	return []string{"--mcp-config=" + path, "--allowedTools=mcp__" + agentTools("", "").Name}, nil
}

func claudeTooOld(text string) string {
	release, err := claude.ParseRelease(claudeVersion(text))
	if err != nil || !release.Before(claude.ExecForm) {
		return ""
	}
	return fmt.Sprintf("Claude Code is %s, which ignores the arguments of a hook, so that it would start without its inbox: "+
		"it takes %s or later: claude update", release, claude.ExecForm)
}

func claudeUnwired(s Session) string {
	return "the session runs, and no hook has told of it: the command has to pass its arguments on to Claude Code (it got --settings), " +
		"and " + filepath.Base(s.Hook) + " has to be executable for this user: see heartbeat doctor"
}
