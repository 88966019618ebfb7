package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/disk"
	"heartbeat/internal/supervise/client"
	"heartbeat/orchestrate"
)

// Input is everything that comes from outside.
type Input struct {
	Codex    bool     // sessions are Codex's, otherwise Claude Code's
	Launched bool     // heartbeat-launch wires each session, so the settings' wiring is not checked
	Inbox    string   // absolute, or "" for the inbox that is wired
	Found    string   // the project's own inbox, for where none is wired; "" for none
	Project  string   // absolute: where the session starts
	Home     string   // "" for none
	Environ  []string // the session's
	Settings []string // further settings files, as given to claude --settings
	Managed  string   // the directory of the managed settings
	Stop     string   // the heartbeat-stop that install would wire, "" with StopErr
	StopErr  error    // why there is no Stop
	Now      time.Time
	// Driven returns the babysitter runs of an inbox: [orchestrate.Driven].
	Driven func(*inbox.Inbox) ([]orchestrate.DrivenRun, []string, error)
	// Hooks asks Codex for the hooks of sessions in the project: [client.CodexHooks].
	Hooks func(ctx context.Context, command, env []string, dir string) ([]client.CodexHook, error)
}

// examination holds the facts, which are gathered once, and the findings.
type examination struct {
	Input
	program program
	account account
	sources []*source // weakest first
	wires   []*wire
	inbox   string       // the path to check, "" if unknown
	besides string       // what wires the inbox when no settings file does, "" for nothing
	box     *inbox.Inbox // nil if this user cannot work in its directory

	id    string // the current check
	found []Check
}

// Run makes all checks.
func Run(in Input) []Check {
	e, sessions := &examination{Input: in, inbox: in.Inbox}, ofClaude
	if in.Codex {
		sessions = ofCodex
		e.loadCodexHooks()
	} else {
		e.program = in.programOf("claude")
		e.account = readAccount(in)
		for _, f := range settings.Files(in.Project, in.Home, in.variable("CLAUDE_CONFIG_DIR"), in.Managed, in.Settings...) {
			s := &source{File: f}
			s.content, s.there, s.err = f.Load(in.Stop)
			if !s.there && slices.Contains(in.Settings, f.Path) {
				s.there, s.err = true, os.ErrNotExist
			}
			e.sources = append(e.sources, s)
		}
		for _, s := range e.sources {
			for _, f := range s.content.Hooks {
				e.addWire(&wire{Found: f, file: s.File})
			}
		}
	}
	switch wired := e.wiredInboxes(); {
	case e.inbox != "":
	case len(wired) == 1:
		e.inbox = wired[0]
	case !slices.ContainsFunc(e.wires, (*wire).stops): // the plugin or the launcher may serve it
		e.inbox = in.Found
	}
	if e.inbox != "" {
		if _, err := disk.StatDir(filepath.Dir(e.inbox)); err == nil && disk.CheckRoot(e.inbox) == nil {
			e.box, _ = inbox.Open(e.inbox, inbox.Options{}) // Open refuses only malformed paths
		}
		e.besides = e.wiredBesides()
	}
	e.check(sessions)
	return e.found
}

func (e *examination) beside(name string) string { return filepath.Join(filepath.Dir(e.inbox), name) }

// variable returns the value of a variable in the shell. The last assignment counts.
func (in Input) variable(name string) string {
	for _, kv := range slices.Backward(in.Environ) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// show shortens a path within the project for a sentence.
func (in Input) show(path string) string {
	if rel, err := filepath.Rel(in.Project, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

// source is one of the settings files that the client merges.
type source struct {
	settings.File
	content settings.Content
	there   bool
	err     error
}

// setting returns a variable's value in the settings and the file that decides it, or nil.
func (e *examination) setting(name string) (string, *source) {
	for _, s := range slices.Backward(e.sources) {
		if value, ok := s.content.Env[name]; ok {
			return value, s
		}
	}
	return "", nil
}

// effective returns a variable of the session. Settings override the shell.
func (e *examination) effective(name string) string {
	if value, s := e.setting(name); s != nil {
		return value
	}
	return e.variable(name)
}

func (e *examination) searched() string {
	switch {
	case e.Codex && e.program.hooks == 0:
		return "Codex has no hooks for " + e.Project + ", or they are disabled ([features] hooks = false in a config.toml), or the folder is not trusted"
	case e.Codex:
		return "none of the hooks that Codex has for " + e.Project + " does; sessions of heartbeat launch need none"
	}
	var paths []string
	for _, s := range e.sources {
		paths = append(paths, e.show(s.Path))
	}
	return "looked at " + strings.Join(paths, ", ")
}
