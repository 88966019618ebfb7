// Package client is what the launcher knows of the clients: how a session of each is started
// with our hook, what its terminal shows, and what it cannot do. Nothing else of the launcher
// asks which client it is.
package client

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/money/budget"
	"heartbeat/internal/screen"
	"heartbeat/internal/words"
)

// Client is one of them.
type Client struct {
	Name  string // of its program, and what --agent calls it
	Title string // what people call it
	Begin string // a command that has something to begin with

	// Check says what of a session's wishes the client cannot do.
	Check func(Wishes) error
	// Command returns the session's command, with what wires the hook.
	Command func(context.Context, Session) ([]string, error)

	// ceiling is the variable that says how many milliseconds a session that prints waits for
	// tasks in the background, "" for none.
	ceiling string

	Recognise func(text string) screen.Sight
	Advice    map[screen.Kind]screen.Advice
	Retrying  func(text string) (screen.Retry, bool)
	// LastWords is what a program that gave up says of why, in one line.
	LastWords func(text string) string
	// TooOld says why the client on this screen is too old for the hook, "" if it is not, or
	// its release is unknown.
	TooOld func(text string) string
	// Unwired says why a session runs of which no hook tells.
	Unwired func(Session) string
}

// Advise is what a person is told of a sight.
func (c *Client) Advise(s screen.Sight) screen.Advice {
	told := c.Advice[s.Kind]
	switch s.Kind {
	case screen.Dialog:
		told.Cause = c.Title + ` shows a dialog ("` + s.Title + `") that a person has to answer`
	case screen.Usage:
		told = screen.Advice{
			Matter: screen.Setup, Cause: c.Title + " refuses its arguments: " + words.Brief(s.Title),
			Fix: "correct the flag behind --, or take it out",
		}
	}
	return told
}

// Wishes are what sessions are asked for.
type Wishes struct {
	Command []string
	Persist bool // sessions stay up, idle, and are given entries
	Limits  budget.Plan
}

// Session is what one session gets.
type Session struct {
	Wishes
	Env     []string
	Dir     string
	Hook    string   // the path of heartbeat-stop
	Args    []string // its arguments
	Inbox   string   // its absolute path
	Private string   // a directory that only this user can reach
	Tools   string   // the path of heartbeat, which gives the tools of an agent; "" for none
	Resume  string   // the conversation to go on with, in place of any that the command names; "" for none
	// Checks is for how long the hook may be busy with checks after a turn.
	Checks time.Duration
}

// The files in [Session.Private].
const (
	SettingsName = "settings.json" // wires the hook
	ToolsName    = "mcp.json"      // wires the tools of an agent
)

// notInherited are variables of the service manager or the launcher around a session.
var notInherited = []string{
	"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", cli.LaunchedVariable,
}

// Environ is the environment of a session: environ, in which a hook of the project's own
// settings learns that it has nothing to do here, and a session that prints how long it waits
// for tasks in the background.
func (c *Client) Environ(environ []string, inbox string, background time.Duration) []string {
	set := false
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		set = set || name == c.ceiling
		return slices.Contains(notInherited, name)
	})
	if c.ceiling != "" && background > 0 && !set {
		env = append(env, fmt.Sprintf("%s=%d", c.ceiling, background.Milliseconds()))
	}
	return append(env, cli.LaunchedVariable+"="+inbox)
}

var clients = []*Client{&claudeCode, &codex}

// Names are what --agent takes.
func Names() (names []string) {
	for _, c := range clients {
		names = append(names, c.Name)
	}
	return names
}

// Of is the client that a command starts: the one that as names, or else the one of that
// program's name. A program that is not known starts Claude Code.
func Of(as string, command []string) *Client {
	for _, name := range []string{as, filepath.Base(command[0])} {
		i := slices.IndexFunc(clients, func(c *Client) bool { return c.Name == name })
		if i >= 0 {
			return clients[i]
		}
	}
	return &claudeCode
}

// agentTools is the server with the tools of an agent for an inbox, as a client starts it
// with the program heartbeat.
func agentTools(heartbeat, inbox string) settings.Server {
	return settings.Server{Name: "heartbeat", Command: heartbeat, Args: []string{"mcp", "--inbox", inbox, "--role", "agent", "--rate", "60"}}
}
