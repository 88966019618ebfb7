package doctor

import (
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	clients "heartbeat/internal/supervise/client"
)

// wire is a heartbeat hook, and the file that has it.
type wire struct {
	settings.Found
	source *source
	hook   Hook
	err    error             // of its flags
	inbox  string            // absolute, "" if that is not known
	codex  clients.CodexHook // what Codex says of it
}

func (e *examination) readWires() []*wire {
	var all []*wire
	for _, s := range e.sources {
		for _, f := range s.content.Hooks {
			w := &wire{Found: f, source: s}
			e.resolve(w)
			all = append(all, w)
		}
	}
	return all
}

// resolve sets what the hook would do.
func (e *examination) resolve(w *wire) {
	named := w.Inbox
	if w.Exact {
		w.hook, w.err = e.Parse(w.Flags, e.effective(cli.InboxVariable))
		if w.err == nil {
			named = w.hook.Inbox
		}
	}
	switch {
	case named == "" || !w.Exact && strings.ContainsAny(named, "$`~"):
	case filepath.IsAbs(named):
		w.inbox = filepath.Clean(named)
	case w.Exact:
		w.inbox = filepath.Join(e.Project, named)
	}
}

// relation is how a hook relates to the inbox that is meant.
type relation uint8

const (
	other relation = iota
	same
	untold // the file does not tell
)

func (e *examination) relate(w *wire) relation {
	switch {
	case e.inbox == "":
		return untold
	case w.inbox != "" && inbox.SameInbox(w.inbox, e.inbox):
		return same
	case w.inbox != "":
		return other
	}
	base := filepath.Base(w.Inbox)
	if w.Inbox != "" && !strings.ContainsAny(base, "$`") && base != filepath.Base(e.inbox) {
		return other
	}
	return untold
}

// related returns the hooks of an event with that relation to the inbox.
func (e *examination) related(event string, r relation) []*wire {
	var found []*wire
	for _, w := range e.wires {
		if w.Event == event && e.relate(w) == r {
			found = append(found, w)
		}
	}
	return found
}

// wiredInboxes returns the inboxes that Stop hooks deliver from, each once.
func (e *examination) wiredInboxes() []string {
	var all []string
	for _, w := range e.wires {
		known := func(other string) bool { return inbox.SameInbox(other, w.inbox) }
		if w.Event == settings.Stop && w.inbox != "" && !slices.ContainsFunc(all, known) {
			all = append(all, w.inbox)
		}
	}
	return all
}

// line returns the command as the file has it.
func (w *wire) line() string {
	if w.Args == nil {
		return w.Command
	}
	return quote(append([]string{w.Command}, w.Args...)...)
}

// distinct groups hooks that the client runs once: the same command in several places.
func distinct(wires []*wire) [][]*wire {
	var groups [][]*wire
next:
	for _, w := range wires {
		for i, g := range groups {
			if g[0].Command == w.Command && slices.Equal(g[0].Args, w.Args) && (g[0].Args == nil) == (w.Args == nil) {
				groups[i] = append(g, w)
				continue next
			}
		}
		groups = append(groups, []*wire{w})
	}
	return groups
}

// places names the files that have the hooks of a group.
func (e *examination) places(group []*wire) string {
	var paths []string
	for _, w := range group {
		if path := e.show(w.source.path); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if len(group) > 1 {
		return strings.Join(paths, " and ") + ", which runs once"
	}
	return paths[0]
}

// install returns the command that wires the inbox like an existing hook, or with
// defaults.
func (e *examination) install(like []*wire) string {
	if len(like) == 0 {
		return e.installLike(nil, filepath.Join(e.Project, ".claude", "settings.json"))
	}
	return e.installLike(like, like[0].source.path)
}

func (e *examination) installLike(like []*wire, path string) string {
	words := []string{"heartbeat", "install", "--inbox", e.inbox}
	if len(like) > 0 {
		switch w := like[0]; {
		case w.Exact && w.err == nil && w.Inbox != "":
			words = append(words[:2:2], w.Flags...)
		case w.rewakes():
			words = append(words, "--rewake")
		}
	}
	return quote(append(words, "--settings", path)...)
}

// uninstall returns the command that removes a hook from its file.
func uninstall(inbox string, w *wire) string {
	return quote("heartbeat", "uninstall", "--inbox", inbox, "--settings", w.source.path)
}

// place names the file and place of a hook.
func (e *examination) place(w *wire) string { return w.Member + " in " + e.show(w.source.path) }

// checkFlags parses the arguments of each hook as the hook does.
func checkFlags(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	var mine []*wire
	for _, w := range e.wires {
		if e.relate(w) == same {
			mine = append(mine, w)
		}
	}
	var all []Check
	for _, g := range distinct(mine) {
		w := g[0]
		switch {
		case !w.Exact:
			all = append(all, warn("flags", e.execForm(w), "what a shell makes of this cannot be told: %s (%s)", w.line(), e.show(w.source.path)))
		case w.err != nil:
			all = append(all, fail("flags", "correct the arguments of "+w.Member+" in "+w.source.path,
				"the hook does not take %s, and then approves every stop: %v", quote(w.Flags...), w.err))
		default:
			all = append(all, ok("flags", "the hook takes %s", quote(w.Flags...)))
		}
	}
	return all
}
