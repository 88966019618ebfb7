package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Names of the events heartbeat can be wired to.
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

// keepEnv names, in "env" itself, the variables that were set before the install, separated by spaces.
const keepEnv = "HEARTBEAT_KEEP_ENV"

// Wiring is what Install writes. It belongs to the inbox that its Args name; hooks of other inboxes are not its own.
type Wiring struct {
	// Command is the absolute path of the hook binary.
	Command string
	// Args are its arguments; they name the inbox as an absolute path: --inbox PATH or --inbox=PATH.
	Args []string
	// Line says that the client takes a hook's command as a line for a shell, and no arguments beside it: they go into that
	// line.
	Line bool
	// Timeout is the hook's time limit in whole seconds, at least 1.
	Timeout int
	// Events are the events to wire, at least one, by the names in this package.
	Events []string
	// Background are those of Events whose hook runs in the background (asyncRewake): the client does not wait for it,
	// and its exit status 2 wakes the idle session.
	Background []string
	// BackgroundTimeout replaces Timeout for them.
	BackgroundTimeout int
	// Meter counts what the session costs; nil wires none, and takes out that of the inbox.
	Meter *Meter
	// Allowed has sessions use a server of the Model Context Protocol without asking; nil leaves that as it is.
	Allowed *Allowed
	// Env are the variables that the session needs. Give Uninstall the same ones: it removes no others.
	Env map[string]string
	// DropEnv says that this wiring does not need Env, which another wiring of the same inbox may have set: Install
	// removes it, and accepts any other value of the user's.
	DropEnv bool
}

// Inbox returns the inbox that the arguments name, or "".
func (w Wiring) Inbox() string {
	inbox, _ := inboxFlag(w.Args)
	return inbox
}

// check returns an error if Install cannot use w.
func (w Wiring) check() error {
	switch {
	case w.Timeout < 1:
		return fmt.Errorf("wiring: timeout of %d s, want at least 1 s", w.Timeout)
	case len(w.Events) == 0:
		return errors.New("wiring: no events")
	case w.Line && len(w.Background) > 0:
		return errors.New("wiring: a client that takes lines runs no hooks in the background")
	case len(w.Background) > 0 && w.BackgroundTimeout < 1:
		return fmt.Errorf("wiring: timeout of %d s in the background, want at least 1 s", w.BackgroundTimeout)
	}
	texts := append([]string{w.Command}, w.Args...)
	if w.Meter != nil {
		texts = append(texts, w.Meter.Command)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("wiring: %q is not UTF-8 and cannot be written as JSON", text)
		}
	}
	if w.Meter != nil && !filepath.IsAbs(w.Meter.Command) {
		return fmt.Errorf("wiring: meter %q is not an absolute path", w.Meter.Command)
	}
	return errors.Join(w.checkIdentity(), w.checkEvents(), w.checkEnv())
}

// checkIdentity returns an error if w does not determine which hooks are its own, which is all that Uninstall needs.
func (w Wiring) checkIdentity() error {
	switch {
	case !filepath.IsAbs(w.Command):
		return fmt.Errorf("wiring: command %q is not an absolute path", w.Command)
	case w.Inbox() == "":
		return errors.New("wiring: the arguments name no --inbox")
	case !filepath.IsAbs(w.Inbox()):
		return fmt.Errorf("wiring: inbox %q is not an absolute path", w.Inbox())
	}
	return nil
}

func (w Wiring) checkEvents() error {
	known := []string{Stop, StopFailure, SessionStart, SessionEnd, UserPromptSubmit, Notification, PostToolBatch}
	for _, event := range w.Events {
		if !slices.Contains(known, event) {
			return fmt.Errorf("wiring: event %q is none of %s", event, strings.Join(known, ", "))
		}
	}
	for _, event := range w.Background {
		if !slices.Contains(w.Events, event) {
			return fmt.Errorf("wiring: event %q is to run in the background and is not wired", event)
		}
	}
	return nil
}

func (w Wiring) checkEnv() error {
	for key, value := range w.Env {
		if key == "" || key == keepEnv || strings.ContainsAny(key, "= ") || !utf8.ValidString(key+value) {
			return fmt.Errorf("wiring: variable %q=%q cannot be used", key, value)
		}
	}
	return nil
}

// inboxFlag returns the value of the last inbox flag, read as Go's flag package and heartbeat-rs do, and whether there is
// one.
func inboxFlag(args []string) (inbox string, ok bool) {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if name != "--inbox" && name != "-inbox" {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		inbox, ok = value, true
	}
	return inbox, ok
}
