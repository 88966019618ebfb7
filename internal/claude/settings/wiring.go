// Package settings adds heartbeat's hooks to a Claude Code settings file, and removes them again. It also edits a
// project's .mcp.json and Codex's hooks.json.
//
// The file is the user's: an install only adds members and changes its own. White space, key order, comments, the
// spelling of numbers and strings, line ends and a byte order mark stay as they are. docs/reference.md shows what is
// written. Hooks of other inboxes are never touched. Another wiring of the same inbox is changed in place.
//
// The file is not locked: a program that writes it at the same instant can lose its edit or undo ours. A change is
// noticed up to the last moment before the write (ErrChanged). Claude Code 2.1.329 loads nothing from a file with
// comments or trailing commas: see [Content.Lax].
package settings

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"
	"unicode/utf8"
)

// Names of the events that heartbeat can be wired to.
const (
	Stop             = "Stop"
	StopFailure      = "StopFailure"
	SessionStart     = "SessionStart"
	SessionEnd       = "SessionEnd"
	UserPromptSubmit = "UserPromptSubmit"
	Notification     = "Notification"
	PostToolBatch    = "PostToolBatch"
)

// BlockCapEnv is the variable that, set to "0", keeps Claude Code from ignoring the ninth block in a row.
const BlockCapEnv = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"

const (
	hookTimeout = 600              // the client's default, in seconds
	idleMargin  = 30 * time.Second // how much longer than the idle interval the timeout is
	// wakeTimeout is a year, in seconds. After that the client ends the background hook, and nothing wakes the session.
	wakeTimeout = 31_536_000
)

// Wiring is what Install writes. It owns the hooks of the inbox that its Args name, and no others.
type Wiring struct {
	Command string   // the absolute path of the hook binary
	Args    []string // name the inbox as an absolute path: --inbox PATH or --inbox=PATH
	Line    bool     // the client takes a hook's command as a shell line, which includes the arguments
	// Wakes means that the hook of some events runs in the background (asyncRewake): the client does not wait for it,
	// and its exit status 2 wakes the idle session.
	Wakes   bool
	Timeout int      // of a hook for which the client waits, in whole seconds
	Events  []string // to wire, by the names in this package
	// Server is a server of the project's .mcp.json. If Allowed is set, sessions may start it and use its tools without
	// asking. "" leaves that as it is.
	Server  string
	Allowed bool
}

// Blocking returns the wiring of a hook that delivers the next entry by blocking the stop. idle is how long the hook
// may wait for an entry.
func Blocking(command string, args []string, idle time.Duration) Wiring {
	return Wiring{
		Command: command,
		Args:    args,
		Timeout: max(hookTimeout, int(math.Ceil((idle + idleMargin).Seconds()))),
		Events:  []string{Stop, StopFailure, SessionStart, SessionEnd, UserPromptSubmit, Notification, PostToolBatch},
	}
}

// Lines returns the wiring for Codex, which takes hooks as shell lines: see [Wiring.Line].
func Lines(command string, args []string, idle time.Duration) Wiring {
	w := Blocking(command, args, idle)
	w.Line, w.Events = true, []string{Stop, SessionStart, SessionEnd, UserPromptSubmit}
	return w
}

// Waking returns the wiring of a hook that waits in the background while the session is idle, and wakes it for an entry.
// The client waits for the hooks of other events, which only record something.
func Waking(command string, args []string) Wiring {
	w := Blocking(command, args, 0)
	w.Wakes = true
	return w
}

// Inbox returns the inbox that the arguments name, or "".
func (w Wiring) Inbox() string {
	inbox, _ := inboxFlag(w.Args)
	return inbox
}

// check returns an error if w cannot be written, or does not determine which hooks are its own.
func (w Wiring) check() error {
	for _, text := range append([]string{w.Command}, w.Args...) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("wiring: %q is not UTF-8 and cannot be written as JSON", text)
		}
	}
	switch inbox := w.Inbox(); {
	case !filepath.IsAbs(w.Command):
		return fmt.Errorf("wiring: command %q is not an absolute path", w.Command)
	case inbox == "":
		return errors.New("wiring: the arguments name no --inbox")
	case !filepath.IsAbs(inbox):
		return fmt.Errorf("wiring: inbox %q is not an absolute path", inbox)
	}
	return nil
}
