package doctor

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/supervise/client"
)

// wire is a heartbeat hook, and the file that holds it.
type wire struct {
	settings.Found
	file  settings.File
	hook  hook.Flags
	err   error            // why the flags cannot be parsed
	inbox string           // absolute, "" if unknown
	codex client.CodexHook // as Codex lists it
}

func (e *examination) loadCodexHooks() {
	if e.program = e.programOf("codex"); e.program.path == "" {
		return
	}
	hooks, err := e.Hooks(context.Background(), []string{e.program.path}, e.Environ, e.Project)
	e.program.err, e.program.hooks = err, len(hooks)
	for _, h := range hooks {
		event := strings.ToUpper(h.Event[:min(1, len(h.Event))]) + h.Event[min(1, len(h.Event)):] // Codex spells it sessionStart
		if found, is := settings.ParseLine(event, h.Command); is {
			found.Timeout, found.Member = time.Duration(h.Timeout)*time.Second, "hooks."+found.Event
			e.addWire(&wire{Found: found, file: settings.File{Path: h.Path}, codex: h})
		}
	}
}

func (e *examination) addWire(w *wire) {
	named := w.Inbox
	if w.Exact {
		if w.hook, w.err = parse(w.Flags, e.effective(cli.InboxVariable)); w.err == nil {
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
	e.wires = append(e.wires, w)
}

// parse reads a hook's arguments as the hook itself would in a session whose variable names that inbox.
func parse(args []string, inbox string) (h hook.Flags, err error) {
	flags := h.Set()
	if err := cli.FlagError(flags.Parse(args)); err != nil {
		return h, err
	}
	switch {
	case h.Help || h.Version:
		return h, errors.New("with --help or --version it only prints")
	case h.NoInput:
		return h, errors.New("with --no-input it takes every stop for an answer, without the client's word")
	case !flags.Changed("inbox"):
		h.Inbox = inbox
	}
	return h, h.Check(flags, flags.Args())
}

// relation is how a hook relates to the inbox that is checked.
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

// related returns the hooks of an event ("" for any) that have that relation to the inbox.
func (e *examination) related(event string, r relation) (found []*wire) {
	for _, w := range e.wires {
		if (event == "" || w.Event == event) && e.relate(w) == r {
			found = append(found, w)
		}
	}
	return found
}

// takers returns the hooks that take entries from the inbox. The others only record something.
func (e *examination) takers() []*wire {
	wakers := slices.DeleteFunc(e.related("", same), func(w *wire) bool { return w.stops() || !w.rewakes() || !waitsAfter(w.Event) })
	return append(e.related(settings.Stop, same), wakers...)
}

// wiredInboxes returns the inboxes that Stop hooks deliver from, each once.
func (e *examination) wiredInboxes() (all []string) {
	for _, w := range e.wires {
		if w.stops() && w.inbox != "" && !slices.ContainsFunc(all, func(other string) bool { return inbox.SameInbox(other, w.inbox) }) {
			all = append(all, w.inbox)
		}
	}
	return all
}

func (w *wire) stops() bool { return w.Event == settings.Stop }

// rewakes reports whether a hook waits in the background and wakes the idle session.
func (w *wire) rewakes() bool {
	if w.Exact && w.err == nil {
		return w.hook.Rewake
	}
	return slices.Contains(w.Flags, "--rewake")
}

// waitsAfter reports whether a hook with --rewake waits for an entry after such an event.
func waitsAfter(event string) bool {
	return event == settings.Stop || event == settings.StopFailure || event == settings.SessionStart
}

// distinct groups identical hooks of several files. Claude Code runs such a group once, Codex runs each hook.
func (e *examination) distinct(wires []*wire) (groups [][]*wire) {
	for _, w := range wires {
		i := slices.IndexFunc(groups, func(g []*wire) bool {
			return !e.Codex && g[0].Command == w.Command && slices.Equal(g[0].Args, w.Args) && (g[0].Args == nil) == (w.Args == nil)
		})
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], w)
	}
	return groups
}

// where shows a hook as its file spells it, or one hook that several files hold.
func (e *examination) where(group ...*wire) string {
	w := group[0]
	line := w.Command
	if w.Args != nil {
		line = quote(append([]string{w.Command}, w.Args...)...)
	}
	return w.Event + " -> " + line + " (" + e.places(group) + ")"
}

// places names the files that hold the hooks of a group.
func (e *examination) places(group []*wire) string {
	var paths []string
	for _, w := range group {
		if path := e.show(w.file.Path); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if len(paths) > 1 {
		return strings.Join(paths, " and ") + ", which runs once"
	}
	return paths[0]
}

// install returns the command that wires the inbox like an existing hook, or with defaults.
func (e *examination) install(like ...*wire) string {
	words, path := []string{"heartbeat", "install", "--inbox", e.inbox}, filepath.Join(e.Project, ".claude", "settings.json")
	if e.Codex {
		words, path = append(words, "--agent", "codex"), ""
	}
	if len(like) > 0 {
		path = like[0].file.Path
		switch w := like[0]; {
		case e.Codex:
		case w.Exact && w.err == nil && w.Inbox != "":
			words = append(words[:2:2], w.Flags...)
		case w.rewakes():
			words = append(words, "--rewake")
		}
	}
	if path != "" {
		words = append(words, "--settings", path)
	}
	return quote(words...)
}

// uninstall returns the command that removes a hook from its file.
func (e *examination) uninstall(inbox string, w *wire) string {
	words := []string{"heartbeat", "uninstall", "--inbox", inbox}
	if e.Codex {
		words = append(words, "--agent", "codex")
	}
	return quote(append(words, "--settings", w.file.Path)...)
}
