package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
)

// checkWired looks for the hook of Stop.
func checkWired(e *examination) []Check {
	if e.inbox == "" {
		return []Check{e.noInbox()}
	}
	groups := distinct(e.related(settings.Stop, same))
	if len(groups) == 0 {
		if c, known := e.wiredByPlugin(); known {
			return []Check{c}
		}
		if c, known := e.wiredByLauncher(); known {
			return []Check{c}
		}
		return []Check{e.notWired()}
	}
	var all []Check
	var lines []string
	for _, g := range groups {
		all = append(all, e.wiredAs(g))
		lines = append(lines, g[0].line()+" ("+e.places(g)+")")
	}
	if c, both := e.bothWirings(); both {
		return append(all, c)
	}
	if len(groups) > 1 {
		all = append(all, warn("wired", "take out all but one", "%d different hooks serve %s, and all run at every stop: %s",
			len(groups), e.show(e.inbox), strings.Join(lines, "; ")))
	}
	return all
}

// noInbox says why it is not known which inbox is meant.
func (e *examination) noInbox() Check {
	const fix = "name it: heartbeat doctor --inbox PATH"
	inboxes := e.wiredInboxes()
	if len(inboxes) > 1 {
		return fail("wired", fix, "several inboxes are wired, so none of their files was looked at: %s", strings.Join(inboxes, ", "))
	}
	for _, w := range e.wires {
		if w.Event == settings.Stop {
			return fail("wired", fix, "which inbox this serves cannot be told: %s (%s)", w.line(), e.show(w.source.path))
		}
	}
	return fail("wired", "wire it: heartbeat install --inbox PATH", "no hook of Stop runs heartbeat-stop: %s", e.placesLooked())
}

// wiredByLauncher is the check for an inbox that heartbeat-launch works on: it wires the
// hook for its own sessions and leaves the settings alone.
func (e *examination) wiredByLauncher() (Check, bool) {
	lock := filepath.Join(filepath.Dir(e.inbox), ".launch-lock")
	if there, err := disk.Exists(lock); err != nil || !there {
		return Check{}, false
	}
	now := "none runs now: a session that is started without it does not ask"
	if pid := machine.LockHolder(lock); pid > 0 {
		now = fmt.Sprintf("process %d works on it now", pid)
	}
	return ok("wired", "heartbeat-launch wires the hook for its own sessions (--inbox %s), and has done so: %s", e.show(e.inbox), now), true
}

// wiredByPlugin is the check for the inbox that heartbeat's plugin for Claude Code serves:
// its hooks are in no settings file, and a hook beside them would keep them still.
func (e *examination) wiredByPlugin() (Check, bool) {
	served := e.effective(cli.InboxVariable)
	if served == "" {
		served = cli.DefaultInbox
	}
	if !filepath.IsAbs(served) {
		served = filepath.Join(e.Project, served)
	}
	for _, s := range slices.Backward(e.sources) {
		for name, on := range s.content.Plugins {
			if plugin, _, _ := strings.Cut(name, "@"); plugin != "heartbeat" {
				continue
			}
			return ok("wired", "the plugin %s (enabledPlugins in %s) brings the hooks, and serves this inbox", name, e.show(s.path)), on && inbox.SameInbox(served, e.inbox)
		}
	}
	return Check{}, false
}

func (e *examination) notWired() Check {
	if unclear := e.related(settings.Stop, untold); len(unclear) > 0 {
		w := unclear[0]
		return warn("wired", "name the inbox by its whole path in it", "whether this serves %s cannot be told: %s (%s)",
			e.show(e.inbox), w.line(), e.show(w.source.path))
	}
	return fail("wired", e.install(nil), "no hook of Stop serves %s: %s", e.show(e.inbox), e.placesLooked())
}

func (e *examination) wiredAs(group []*wire) Check {
	for _, w := range group {
		if c, wrong := e.misplaced("wired", w); wrong {
			return c
		}
	}
	w := group[0]
	line, places := w.line(), e.places(group)
	named := w.Inbox
	if w.Exact && w.err == nil {
		named = w.hook.Inbox
	}
	switch {
	case !filepath.IsAbs(named):
		return warn("wired", "name the inbox by its whole path: "+e.inbox,
			"Stop -> %s (%s): which file that is depends on the folder the session stands in", line, places)
	}
	if w.rewakes() {
		return ok("wired", "Stop -> %s (%s): it wakes the idle session, which has to be interactive and is free for a person in between; "+
			"without --rewake an entry would be handed over within 0.1 s of a turn's end, also under -p", line, places)
	}
	return ok("wired", "Stop -> %s (%s): it hands an entry over when a turn ends; "+
		"with --rewake the session would sit idle, free for a person, until an entry wakes it", line, places)
}

// checkOthers looks for the hooks of other inboxes.
func checkOthers(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	groups := distinct(e.related(settings.Stop, other))
	if len(groups) == 0 {
		return []Check{ok("others", "no other inbox is wired for this project")}
	}
	var all []Check
	for _, g := range groups {
		inbox := g[0].inbox
		if inbox == "" {
			inbox = g[0].Inbox
		}
		all = append(all, warn("others", "take one of them out: "+uninstall(inbox, g[0]),
			"another inbox, %s, is wired as well (%s): at every stop both hooks deliver", inbox, e.places(g)))
	}
	return all
}

// checkHooksOn looks for switches that keep the client from running hooks.
func checkHooksOn(e *examination) []Check {
	ours := func(w *wire) bool { return w.Event == settings.Stop && w.source.managed && e.relate(w) == same }
	managed := slices.ContainsFunc(e.wires, ours)
	files, contents := []settings.File{}, map[string]settings.Content{}
	for _, s := range e.sources {
		files, contents[s.path] = append(files, settings.File{Path: s.path, Managed: s.managed}), s.content
	}
	if off := settings.HooksOff(files, func(f settings.File) settings.Content { return contents[f.Path] }, managed); off != nil {
		return []Check{fail("hooks-on", off.Fix(), "%s is true in %s, which keeps the hooks from running", off.Member, e.show(off.Path))}
	}
	return []Check{ok("hooks-on", "no settings file keeps hooks from running")}
}
