package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/disk"
	"heartbeat/internal/screen"
)

var claudeCode = Client{
	Name: "claude", Title: "Claude Code", Begin: `claude "Read CLAUDE.md"`,
	Check: checkClaude, Command: claudeCommand,
	Recognise: RecogniseClaude, Advice: claudeAdvice, Retrying: claudeRetrying, LastWords: claudeLastWords,
	TooOld: claudeTooOld, ceiling: "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", Unwired: claudeUnwired,
}

// claudeLastWords returns the last line before the client's hint how to resume the session, which is no reason of an end:
// "" if the session's own screen is all that stands there.
func claudeLastWords(text string) string {
	if at := strings.LastIndex("\n"+text, "\nResume this session with:"); at >= 0 {
		if text = text[:at]; RecogniseClaude(text) != (screen.Sight{}) {
			return ""
		}
	}
	return screen.LastLine(text)
}

func checkClaude(w Wishes) error {
	for _, arg := range ownArguments(w.Command[1:]) {
		if w.Persist && (arg == "-p" || arg == "--print") {
			return fmt.Errorf("--mode persist needs an interactive session, and with %s the client's ends with its turn: leave it out", arg)
		}
	}
	return nil
}

// ownArguments leaves out what follows --, which cannot be flags of the client.
func ownArguments(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}

// ErrHooksOff says that settings keep the client from running hooks, so that a session would ask for no entry.
var ErrHooksOff = errors.New("a session would ask for nothing")

func claudeCommand(_ context.Context, s Session) ([]string, error) {
	command, _, off, err := Claude(s, false)
	if err == nil && off != nil {
		return nil, fmt.Errorf("%w: %v", ErrHooksOff, off)
	}
	return command, err
}

// Claude returns the command of a session of Claude Code and writes the settings that wire its hook, including those
// that the command names. session is the conversation's ID, "" if only the client will know it; with known, a new
// conversation gets its ID here. off says what keeps the client from running the hook, nil for nothing.
func Claude(s Session, known bool) (command []string, session string, off *settings.Off, err error) {
	if err := checkHooksRun(s); err != nil {
		return nil, "", nil, err
	}
	rest, given := settings.TakeFlag(s.Command[1:])
	path := filepath.Join(s.Private, SettingsName)
	if off, err = wireClaude(s, given, path); err != nil {
		return nil, "", nil, err
	}
	tools, err := claudeTools(s)
	if err != nil {
		return nil, "", nil, err
	}
	session, flags, rest := conversationOf(rest, s.Resume, known)
	return slices.Concat([]string{s.Command[0], "--settings", path}, tools, flags, rest), session, off, nil
}

// wireClaude writes a session's settings to path, and returns what keeps its hook from running.
func wireClaude(s Session, given, path string) (off *settings.Off, err error) {
	text, err := settings.ReadFlag(given, s.Dir)
	if err != nil {
		return nil, fmt.Errorf("settings of the session: --settings of the command: %w", err)
	}
	off = settings.SwitchedOffBy(s.Env, s.Dir, text)
	wired := settings.Blocking(s.Hook, s.Args, s.Checks)
	if s.Persist {
		wired = settings.Waking(s.Hook, append(slices.Clone(s.Args), "--rewake"))
	}
	if text, err = settings.Install(text, wired); err != nil {
		return nil, fmt.Errorf("settings of the session: %w", err)
	}
	content, err := settings.ReadContent(text, s.Hook)
	switch {
	case err != nil:
		return nil, fmt.Errorf("settings of the session: %w", err)
	case content.Switches["disableAllHooks"]:
		return nil, noHooks("disableAllHooks, in the settings that the command names with --settings,")
	}
	if err := disk.Publish(path, text, false); err != nil {
		return nil, fmt.Errorf("write the settings of the session: %w", err)
	}
	return off, nil
}

// safeMode turns off all that a user has set up for the client, hooks included.
const safeMode = "CLAUDE_CODE_SAFE_MODE"

// checkHooksRun refuses arguments and environments that keep the client from running hooks.
func checkHooksRun(s Session) error {
	for _, arg := range ownArguments(s.Command[1:]) {
		if arg == "--bare" || arg == "--safe-mode" {
			return noHooks(arg)
		}
	}
	for _, kv := range s.Env {
		if value, is := strings.CutPrefix(kv, safeMode+"="); is && value != "" && value != "0" && value != "false" {
			return noHooks(safeMode + " in the environment")
		}
	}
	return nil
}

func noHooks(what string) error {
	return fmt.Errorf("%s turns off hooks, and without its hook nobody could tell that an entry is answered: leave it out", what)
}

// claudeTools writes the file that wires the agent's tools beside the settings, and returns its
// arguments. Each is one word, since the command's own follow.
func claudeTools(s Session) ([]string, error) {
	if s.Tools == "" {
		return nil, nil
	}
	text, err := settings.InstallServer(nil, settings.AgentServer(s.Tools, s.Inbox))
	if err != nil {
		return nil, fmt.Errorf("tools of the session: %w", err)
	}
	path := filepath.Join(s.Private, ToolsName)
	if err := disk.Publish(path, text, false); err != nil {
		return nil, fmt.Errorf("write the tools of the session: %w", err)
	}
	return []string{"--mcp-config=" + path, "--allowedTools=mcp__" + settings.AgentServer("", "").Name}, nil
}

func claudeTooOld(text string) string {
	greeted := greeting.FindStringSubmatch(text)
	if greeted == nil {
		return ""
	}
	release, err := settings.ParseRelease(greeted[1])
	if err != nil || !release.Before(settings.ExecForm) {
		return ""
	}
	return fmt.Sprintf("Claude Code is %s, which ignores the arguments of a hook, so that it would start without its inbox: "+
		"it takes %s or later: claude update", release, settings.ExecForm)
}

func claudeUnwired(s Session) string {
	return "the session runs, and no hook has reported it: the command has to pass its arguments on to Claude Code (it got --settings), " +
		"and " + filepath.Base(s.Hook) + " has to be executable for this user: see heartbeat doctor"
}

// aSession matches the client's session IDs.
var aSession = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// conversationOf returns the session that the arguments ask for ("" if only the client will know), the flags that say
// so, and the other arguments. resume overrides the arguments; with known, a new conversation gets its ID here.
func conversationOf(args []string, resume string, known bool) (session string, flags, rest []string) {
	asked := readConversation(args)
	switch {
	case resume != "":
		return resume, []string{"--resume", resume}, asked.rest
	case asked.session != "":
		return asked.session, nil, args
	case asked.elsewhere || asked.fork:
		return "", nil, args
	case asked.resume != "" || !known:
		return asked.resume, nil, args
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails; the client draws an ID likewise
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	id := fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	return id, []string{"--session-id", id}, args
}

// Anew returns arguments of Claude Code without those that choose the conversation.
func Anew(args []string) []string { return readConversation(args).rest }

type conversationArgs struct {
	session   string // --session-id
	resume    string // --resume, if it is a session ID
	fork      bool   // the conversation continues in another session
	elsewhere bool   // the client finds the conversation, by a name or as its last
	rest      []string
}

func readConversation(args []string) (a conversationArgs) {
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		next := func() string {
			switch {
			case joined:
				return value
			case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
				i++
				return args[i]
			}
			return ""
		}
		switch name {
		case "--":
			a.rest = append(a.rest, args[i:]...)
			return a
		case "--session-id":
			a.session = next()
		case "--resume", "-r":
			if id := next(); aSession.MatchString(id) {
				a.resume = id
			} else {
				a.elsewhere = true
			}
		case "--from-pr", "--teleport":
			next()
			a.elsewhere = true
		case "--continue", "-c":
			a.elsewhere = true
		case "--fork-session":
			a.fork = true
		default:
			a.rest = append(a.rest, args[i])
		}
	}
	return a
}
