package queue

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
)

// Command is the arguments, without the program's name, of the next round's client: those
// given, with the settings that wire the hook and with a session that is known
// beforehand, if the arguments leave that open. resume is the session to go on with, in
// place of any that the arguments name; "" for none. It replaces the settings of an
// earlier round.
func (q *Queue) Command(args []string, resume string) ([]string, error) {
	if err := q.hooksRun(args); err != nil {
		return nil, err
	}
	rest, given := settings.TakeFlag(args)
	of, rest := conversationOf(rest, resume)
	start, err := machine.RandomName()
	if err != nil {
		return nil, err
	}
	q.round = round{start: start, session: of.session}
	if err := q.wire(given); err != nil {
		return nil, err
	}
	return slices.Concat([]string{"--settings", q.settingsPath()}, of.flags, rest), nil
}

// Session is the session of the round that [Queue.Command] was called for, "" if only the
// client will know.
func (q *Queue) Session() string { return q.round.session }

func (q *Queue) settingsPath() string { return filepath.Join(q.o.Dir, "settings.json") }

// wire writes the settings of the round. Settings that the arguments name are a part of
// them.
func (q *Queue) wire(given string) error {
	text, err := settings.ReadFlag(given, q.o.Cwd)
	if err != nil {
		return fmt.Errorf("read the settings that claudeArgs name with --settings: %w", err)
	}
	if text, err = settings.Install(text, q.hook()); err != nil {
		return fmt.Errorf("wire the hook into the session's settings: %w", err)
	}
	content, err := settings.Look(text, q.o.Hook)
	if err != nil {
		return fmt.Errorf("wire the hook into the session's settings: %w", err)
	}
	if content.Switches["disableAllHooks"] {
		return errors.New("the settings that claudeArgs name have disableAllHooks, and without its hook nobody could tell that an entry is answered: take that out")
	}
	q.hooksOff = settings.SwitchedOffBy(q.o.Env, q.o.Cwd, text)
	q.round.hooks = q.hooksOff == nil
	if err := disk.Publish(q.settingsPath(), text, false); err != nil {
		return fmt.Errorf("write the session's settings: %w", err)
	}
	return nil
}

// hook is the hook with its flags.
func (q *Queue) hook() settings.Wiring {
	args := []string{
		"--inbox", q.box.Path(), "--launched", "--start", q.round.start,
		"--background-timeout", q.o.Background.String(),
	}
	return settings.Blocking(q.o.Hook, append(args, cli.HookArguments(q.o.Settings)...), 0)
}

// safeMode turns off all that a user has set up for the client, hooks too.
const safeMode = "CLAUDE_CODE_SAFE_MODE"

// hooksRun refuses arguments and an environment that keep the client from running its
// hooks.
func (q *Queue) hooksRun(args []string) error {
	for _, arg := range args {
		switch arg {
		case "--":
			return nil
		case "--bare", "--safe-mode":
			return fmt.Errorf("claudeArgs have %s, which turns off hooks, and without its hook nobody could tell that an entry is answered: leave it out", arg)
		}
	}
	for _, kv := range q.o.Env {
		if value, is := strings.CutPrefix(kv, safeMode+"="); is && value != "" && value != "0" && value != "false" {
			return fmt.Errorf("the environment has %s, which turns off hooks, and without its hook nobody could tell that an entry is answered: leave it out", safeMode)
		}
	}
	return nil
}

// Environ is the client's environment: environ, in which a hook of the project's own
// settings learns that it has nothing to do here.
func (q *Queue) Environ(environ []string) []string {
	const ceiling = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS" // how long a session under -p waits for tasks
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, cli.LaunchedVariable+"=") })
	if q.o.Background > 0 && !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, ceiling+"=") }) {
		env = append(env, fmt.Sprintf("%s=%d", ceiling, q.o.Background.Milliseconds()))
	}
	return append(env, cli.LaunchedVariable+"="+q.box.Path())
}

// conversation is which session the client is to have.
type conversation struct {
	session string   // "" if only the client will know
	flags   []string // that say so, beside those that were given
}

// aSession is how the client names its sessions.
var aSession = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// conversationOf tells which session the arguments ask for, and takes out what resume
// replaces.
func conversationOf(args []string, resume string) (of conversation, rest []string) {
	asked := readConversation(args)
	switch {
	case resume != "":
		return conversation{resume, []string{"--resume", resume}}, asked.rest
	case asked.session != "":
		return conversation{session: asked.session}, args
	case asked.elsewhere || asked.fork:
		return conversation{}, args // as it does when a name or --continue finds it
	case asked.resume != "":
		return conversation{session: asked.resume}, args
	}
	id := newSession()
	return conversation{id, []string{"--session-id", id}}, args
}

// asked is what arguments say about the conversation.
type asked struct {
	session   string // --session-id
	resume    string // --resume, if it is a session's id
	fork      bool   // the conversation goes on in another session
	elsewhere bool   // the client finds it by itself
	rest      []string
}

func readConversation(args []string) (a asked) {
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

// newSession draws a session's id, as the client does.
func newSession() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
