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
)

// wire writes the settings that wire the hook for this session alone, and returns
// the command with them. Settings that the command names are a part of them.
func (r *run) wire() ([]string, error) {
	command, given := takeSettings(r.Terminal.Command)
	text, err := r.readSettings(given)
	if err != nil {
		return nil, fmt.Errorf("settings of the session: --settings of the command: %w", err)
	}
	if text, err = settings.Install(text, r.wiring()); err != nil {
		return nil, fmt.Errorf("settings of the session: %w", err)
	}
	path := r.private.settings()
	if err := disk.Publish(path, text, false); err != nil {
		return nil, fmt.Errorf("write the settings of the session: %w", err)
	}
	flags := []string{"--settings", path}
	if r.resume != "" {
		flags = append(flags, "--resume", r.resume)
	}
	return slices.Insert(command, 1, flags...), nil
}

// takeSettings takes the flag out of the client's command that names settings.
func takeSettings(command []string) (rest []string, given string) {
	rest = slices.Clone(command)
	for i, arg := range rest {
		value, joined := strings.CutPrefix(arg, "--settings=")
		switch {
		case i == 0:
		case arg == "--":
			return rest, ""
		case joined:
			return slices.Delete(rest, i, i+1), value
		case arg == "--settings" && i+1 < len(rest):
			value = rest[i+1]
			return slices.Delete(rest, i, i+2), value
		}
	}
	return rest, ""
}

// readSettings reads what the flag names as the client does: a file, or the JSON
// itself.
func (r *run) readSettings(given string) ([]byte, error) {
	switch {
	case given == "":
		return nil, nil
	case strings.HasPrefix(strings.TrimSpace(given), "{"):
		return []byte(given), nil
	case !filepath.IsAbs(given):
		given = filepath.Join(r.Terminal.Dir, given)
	}
	return disk.ReadGiven(given, settings.MaxFile)
}

func (r *run) wiring() settings.Wiring {
	args := []string{
		"--inbox", r.box.Path(), "--launched", "--signal-file", r.Terminal.ExitSignal,
		"--max-attempts", strconv.Itoa(r.Recovery.MaxAttempts),
	}
	if r.Recovery.PolicyOf == nil {
		args = append(args, "--on-orphan", string(r.Recovery.Policy))
	}
	if r.MaxEntries > 0 {
		args = append(args, "--max-entries", strconv.Itoa(r.MaxEntries))
	}
	if r.Mode == Drain {
		args = append(args, "--background-timeout", r.Background.String())
	}
	for _, dir := range r.Runs.Dirs {
		args = append(args, "--run", dir)
	}
	if len(r.Runs.Dirs) > 0 {
		args = append(args, r.Runs.Arguments()...)
	}
	if r.Mode == Persist {
		return settings.Waking(r.Hook, append(args, "--rewake"))
	}
	return settings.Blocking(r.Hook, args, 0)
}

// environment is the session's: it knows that its hook is the launcher's, and
// nothing of the launcher's own service manager.
func (r *run) environment() []string {
	env := slices.DeleteFunc(slices.Clone(r.Terminal.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", cli.LaunchedVariable}, name)
	})
	const ceiling = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS" // how long a session under -p waits for tasks
	if r.Background > 0 && !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, ceiling+"=") }) {
		env = append(env, fmt.Sprintf("%s=%d", ceiling, r.Background.Milliseconds()))
	}
	return append(env, cli.LaunchedVariable+"="+r.box.Path())
}

// CheckCommand says why a command cannot be a session of that mode.
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
