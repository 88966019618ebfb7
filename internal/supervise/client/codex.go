package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/screen"
)

var codex = Client{
	Name: "codex", Title: "Codex", Begin: `codex "Read AGENTS.md"`, Mute: true,
	Check: checkCodex, Command: codexCommand,
	Recognise: recogniseCodex, Advice: codexAdvice, Unwired: codexUnwired,
	Retrying:  func(string) (r screen.Retry, retrying bool) { return r, false },
	LastWords: codexLastWords,
	TooOld:    func(string) string { return "" }, // such a release does not list its hooks
}

// codexIdle is how long the hook of a session that stays up waits for an entry. Codex has no
// background hook to wake it, and a wait that ends costs a turn.
const codexIdle = 365 * 24 * time.Hour

func checkCodex(w Wishes) error {
	verb, _, flags := readCodex(w.Command[1:])
	switch {
	case verb == "review":
		return errors.New("codex review does one thing and ends: name codex exec, or codex alone")
	case w.Limits.Entry.Spending():
		return errors.New("--max-cost-per-entry and --max-tokens-per-entry mean nothing with Codex, which cannot be stopped between two requests: set --max-time-per-entry, or a limit of the day")
	}
	for _, f := range flags {
		key, _, _ := strings.Cut(f.value, "=")
		key = strings.TrimSpace(key)
		switch {
		case f.name == "--ephemeral" && w.Limits.Day.Spending():
			return errors.New("--ephemeral leaves no rollout, which shows what the session spends: leave it out, or the limit")
		case (f.name == "-c" || f.name == "--config") && (key == "hooks" || strings.HasPrefix(key, "hooks.")):
			return fmt.Errorf("%s would replace the hook of the session: put hooks of your own into hooks.json", key)
		case f.name == "--remote":
			return errors.New("--remote: that session runs elsewhere, and its hooks do too: leave it out")
		}
	}
	return nil
}

// codexValues are the flags of Codex that take a value.
var codexValues = []string{
	"-c", "--config", "--enable", "--disable", "-i", "--image", "-m", "--model", "--local-provider", "-p", "--profile",
	"-s", "--sandbox", "-C", "--cd", "--add-dir", "-a", "--ask-for-approval", "--remote", "--remote-auth-token-env",
	"--thread-source", "--output-schema", "--color", "-o", "--output-last-message",
}

// codexFlag is a flag of a Codex command, with the arguments that spell it.
type codexFlag struct {
	name, value string
	args        []string
}

// readCodex parses arguments: the Codex command that they name ("" for a session in the terminal),
// the position of the prompt (or where one could be added), and the flags.
func readCodex(args []string) (verb string, prompt int, flags []codexFlag) {
	args = ownArguments(args)
	prompt = len(args)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			if verb == "" && prompt == len(args) && slices.Contains([]string{"exec", "e", "resume", "fork", "review"}, arg) {
				verb = arg
			} else {
				prompt = min(prompt, i)
			}
			continue
		}
		name, value, joined := strings.Cut(arg, "=")
		if len(arg) > 2 && slices.Contains(codexValues, arg[:2]) {
			name, value, joined = arg[:2], strings.TrimPrefix(arg[2:], "="), true
		}
		f := codexFlag{name, value, args[i : i+1]}
		if !joined && slices.Contains(codexValues, name) {
			if i++; i == len(args) {
				break // Codex reports what is missing
			}
			f.value, f.args = args[i], args[i-1:i+1]
		}
		flags = append(flags, f)
	}
	return verb, prompt, flags
}

// codexCommand wires the hook by arguments instead of a file, and makes Codex trust the hook for this session.
// Every other hook that nobody has trusted stays untrusted.
func codexCommand(ctx context.Context, s Session) ([]string, error) {
	for _, text := range append([]string{s.Hook, s.Tools, s.Inbox}, s.Args...) {
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("%q is not UTF-8, and cannot be a part of Codex's configuration", text)
		}
	}
	wiring, line := codexWiring(s)
	state, err := trust(ctx, s, wiring, line)
	if err != nil {
		return nil, err
	}
	args := s.Command[1:]
	command := slices.Concat(s.Command[:1], wiring, []string{"-c", state}, codexTools(s))
	verb, prompt, _ := readCodex(args)
	if verb == "" || verb == "resume" || verb == "fork" {
		// A server's session would outlive its terminal.
		command = append(command, "--no-daemon")
	}
	if s.Resume != "" {
		args = codexResuming(args, verb, prompt, s.Resume)
	}
	return append(command, args...), nil
}

// codexResuming makes the session continue a conversation. Flags go before the command resume, which has fewer of its
// own, and the prompt goes to the end.
func codexResuming(args []string, verb string, prompt int, id string) []string {
	if verb == "resume" || verb == "fork" || verb == "review" {
		return args // they name the conversation
	}
	own := ownArguments(args)
	after := min(prompt+1, len(own))
	flags := slices.Concat(own[:prompt], own[after:])
	for i := 0; i+1 < len(flags); i++ {
		if flags[i] == "-i" || flags[i] == "--image" { // such a flag would take the command resume for one more image
			flags = slices.Replace(flags, i, i+2, "--image="+flags[i+1])
		}
	}
	return slices.Concat(flags, []string{"resume", id}, own[prompt:after], args[len(own):])
}

// codexWiring returns the arguments that wire the hook, and the hook's shell line.
func codexWiring(s Session) (args []string, line string) {
	own, idle := s.Args, time.Duration(0)
	if s.Persist {
		idle = codexIdle
		own = append(slices.Clone(own), "--mode", "persist", "--idle-interval", idle.String())
	}
	w := settings.Lines(s.Hook, own, max(idle, s.Checks))
	line = settings.CommandLine(w.Command, w.Args)
	for _, event := range w.Events {
		args = append(args, "-c", fmt.Sprintf("hooks.%s=[{hooks=[{type=\"command\",command=%s,timeout=%d}]}]", event, toml(line), w.Timeout))
	}
	return args, line
}

func codexTools(s Session) []string {
	if s.Tools == "" {
		return nil
	}
	tools := settings.AgentServer(s.Tools, s.Inbox)
	words := make([]string, len(tools.Args))
	for i, flag := range tools.Args {
		words[i] = toml(flag)
	}
	return []string{"-c", fmt.Sprintf("mcp_servers.%s={command=%s,args=[%s],default_tools_approval_mode=\"approve\"}", tools.Name, toml(tools.Command), strings.Join(words, ","))}
}

// toml returns a basic TOML string: a JSON string, but for one character.
func toml(text string) string {
	var quoted strings.Builder
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string always encodes
	return strings.ReplaceAll(strings.TrimSuffix(quoted.String(), "\n"), "\x7f", `\u007f`)
}

func codexUnwired(s Session) string {
	return "the session runs, and no hook has reported it: Codex's first does with the first prompt, so give the command something to begin with, " +
		"as in codex \"Read AGENTS.md\"; the command has to pass its arguments on to Codex (it got -c hooks...), " +
		"a profile (-p) may not switch hooks off, and " + filepath.Base(s.Hook) + " has to be executable for this user"
}

// trust asks Codex for the names and hashes of the hooks in the wiring, and returns the argument
// that makes Codex run them without a person's trust.
func trust(ctx context.Context, s Session, wiring []string, line string) (string, error) {
	command := slices.Concat(s.Command[:1], wiring, codexConfig(s.Command[1:]))
	hooks, err := CodexHooks(ctx, command, s.Env, s.Dir)
	if err != nil {
		return "", err
	}
	var trusted []string
	for _, h := range hooks {
		if h.Source == fromFlags && h.Command == line {
			trusted = append(trusted, fmt.Sprintf("%s={trusted_hash=%s}", toml(h.Key), toml(h.Sum)))
		}
	}
	if len(trusted) != len(wiring)/2 {
		return "", fmt.Errorf("%s does not take the hook of the session: its hooks are disabled "+
			"([features] hooks = false in a config.toml, --disable hooks, or an administrator), "+
			"or the command does not pass its arguments on to Codex", s.Command[0])
	}
	return "hooks.state={" + strings.Join(trusted, ",") + "}", nil
}

// codexConfig returns the arguments that change Codex's configuration, except a profile, which its server refuses.
func codexConfig(args []string) (config []string) {
	_, _, flags := readCodex(args)
	for _, f := range flags {
		if slices.Contains([]string{"-c", "--config", "--enable", "--disable"}, f.name) {
			config = append(config, f.args...)
		}
	}
	return config
}
