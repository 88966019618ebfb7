// Package client is all that the launcher knows about the clients: how to start a session of each
// with our hook, what its terminal shows, and what it cannot do.
package client

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/price"
	"heartbeat/internal/screen"
	"heartbeat/internal/words"
)

// Client is one kind of client.
type Client struct {
	Name  string // the program's name, and the value of --agent
	Title string // the name for people
	Begin string // an example of a command that begins with something to do
	Mute  bool   // only its screen shows that it asks for permission

	// Check returns an error for a wish that the client cannot fulfil.
	Check func(Wishes) error
	// Command returns the session's command, which wires the hook.
	Command func(context.Context, Session) ([]string, error)

	// ceiling names the variable that limits, in milliseconds, how long a printing session waits for
	// background tasks; "" for none.
	ceiling string

	Recognise func(text string) screen.Sight
	Advice    map[screen.Kind]screen.Advice
	Retrying  func(text string) (screen.Retry, bool)
	// LastWords returns, in one line, why a program gave up.
	LastWords func(text string) string
	// TooOld says why the client on this screen is too old for the hook, "" if it is not or its release is unknown.
	TooOld func(text string) string
	// Unwired says why a session may run without its hook reporting.
	Unwired func(Session) string
}

// Advise returns the advice to a person about a sight.
func (c *Client) Advise(s screen.Sight) screen.Advice {
	advice := c.Advice[s.Kind]
	switch s.Kind {
	case screen.Dialog:
		advice.Cause = c.Title + ` shows a dialog ("` + s.Title + `") that a person has to answer`
	case screen.Usage:
		advice = screen.Advice{
			Matter: screen.Setup, Cause: c.Title + " refuses its arguments: " + words.Brief(s.Title),
			Fix: "correct the flag behind --, or take it out",
		}
	}
	return advice
}

// Wishes are what every session is to do.
type Wishes struct {
	Command []string
	Persist bool // sessions stay up, idle, and are given entries
	Limits  price.Plan
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
	Tools   string   // the path of heartbeat, which provides the agent's tools; "" for no tools
	Resume  string   // the conversation to continue, instead of one that the command names; "" for none
	// Checks is how long the hook may be busy with checks after a turn.
	Checks time.Duration
}

// The files in [Session.Private].
const (
	SettingsName = "settings.json" // wires the hook
	ToolsName    = "mcp.json"      // wires the agent's tools
)

// notInherited are variables meant for the launcher alone.
var notInherited = []string{
	"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", cli.LaunchedVariable,
}

// Environ returns a session's environment: environ, the variable that makes a hook of the project's own
// settings do nothing, and how long a printing session waits for background tasks.
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

// Names are the values of --agent.
func Names() (names []string) {
	for _, c := range clients {
		names = append(names, c.Name)
	}
	return names
}

// Of returns the client with the name as, else with the name of the command's program, else Claude Code.
func Of(as string, command []string) *Client {
	for _, name := range []string{as, machine.ProgramOf(filepath.Base(command[0]))} {
		i := slices.IndexFunc(clients, func(c *Client) bool { return c.Name == name })
		if i >= 0 {
			return clients[i]
		}
	}
	return &claudeCode
}
