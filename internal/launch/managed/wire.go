package managed

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	mcp "heartbeat/internal/mcp/page"
)

// wiring gives a session its hook.
type wiring struct {
	Options
	inbox string // its absolute path
	path  string // of the settings file, which only this user can reach
}

// command writes the settings that wire the hook for one session, and returns the
// client's command with them. Settings that the command names are a part of them.
// resume is the conversation to go on with, "" for a new one.
func (w *wiring) command(resume string) ([]string, error) {
	args, given := settings.TakeFlag(w.Terminal.Command[1:])
	text, err := settings.ReadFlag(given, w.Terminal.Dir)
	if err != nil {
		return nil, fmt.Errorf("settings of the session: --settings of the command: %w", err)
	}
	if text, err = settings.Install(text, w.hook()); err != nil {
		return nil, fmt.Errorf("settings of the session: %w", err)
	}
	if err := disk.Publish(w.path, text, false); err != nil {
		return nil, fmt.Errorf("write the settings of the session: %w", err)
	}
	command := []string{w.Terminal.Command[0], "--settings", w.path}
	tools, err := w.tools()
	if err != nil {
		return nil, err
	}
	command = append(command, tools...)
	if resume != "" {
		command = append(command, "--resume", resume)
	}
	return append(command, w.withBudget(args)...), nil
}

// tools writes what wires the tools of an agent for one session, beside the settings, and
// returns the arguments for that. Each is one word: what follows is the command's own.
func (w *wiring) tools() ([]string, error) {
	if w.Tools == "" {
		return nil, nil
	}
	text, err := mcp.Config(w.Tools, &mcp.Flags{Inbox: w.inbox, Role: mcp.Agent, Rate: mcp.DefaultRate})
	if err != nil {
		return nil, fmt.Errorf("tools of the session: %w", err)
	}
	path := filepath.Join(filepath.Dir(w.path), toolsName)
	if err := disk.Publish(path, text, false); err != nil {
		return nil, fmt.Errorf("write the tools of the session: %w", err)
	}
	return []string{"--mcp-config=" + path, "--allowedTools=mcp__" + mcp.ServerName}, nil
}

// hook is the hook with its flags.
func (w *wiring) hook() settings.Wiring {
	args := []string{
		"--inbox", w.inbox, "--launched", "--signal-file", w.Terminal.ExitSignal,
		"--max-attempts", strconv.Itoa(w.Recovery.MaxAttempts),
	}
	if w.Recovery.PolicyOf == nil {
		args = append(args, "--on-orphan", string(w.Recovery.Policy))
	}
	if w.MaxEntries > 0 {
		args = append(args, "--max-entries", strconv.Itoa(w.MaxEntries))
	}
	args = append(args, w.Limits.Arguments()...)
	if w.Mode == Drain {
		args = append(args, "--background-timeout", w.Background.String())
	}
	for _, dir := range w.Runs.Dirs {
		args = append(args, "--run", dir)
	}
	if len(w.Runs.Dirs) > 0 {
		args = append(append(args, w.Runs.Arguments()...), w.Runs.LimitArguments()...)
	}
	wired := settings.Blocking(w.Hook, args, 0)
	if w.Mode == Persist {
		wired = settings.Waking(w.Hook, append(args, "--rewake"))
	}
	wired.Meter = w.meter()
	return wired
}

// meter is the status line that counts what the session costs. The session's settings have
// precedence over the others, so it shows the line that a person set up there.
func (w *wiring) meter() *settings.Meter {
	if w.Meter == "" {
		return nil
	}
	below, _ := settings.Shown(settings.Below(settings.FilesOf(w.Terminal.Env, w.Terminal.Dir), w.path))
	return &settings.Meter{Command: w.Meter, Below: below}
}

// environment is the session's: it names the inbox that the launcher wired a hook for,
// and nothing of the launcher's own service manager.
func (w *wiring) environment() []string {
	env := slices.DeleteFunc(slices.Clone(w.Terminal.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", cli.LaunchedVariable}, name)
	})
	const ceiling = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS" // how long a session under -p waits for tasks
	if w.Background > 0 && !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, ceiling+"=") }) {
		env = append(env, fmt.Sprintf("%s=%d", ceiling, w.Background.Milliseconds()))
	}
	return append(env, cli.LaunchedVariable+"="+w.inbox)
}

// CheckCommand returns an error if the command cannot be a session of that mode.
func CheckCommand(command []string, mode Mode) error {
	if mode != Persist {
		return nil
	}
	for _, arg := range command[1:] {
		switch arg {
		case "--":
			return nil
		case "-p", "--print":
			return errors.New("--mode persist needs an interactive session, and with " + arg + " the client's ends with its turn: leave it out")
		}
	}
	return nil
}
