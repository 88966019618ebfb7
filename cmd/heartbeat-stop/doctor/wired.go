package doctor

import (
	"path/filepath"
	"strings"

	"heartbeat/internal/settings"
)

// checkWired looks for the hook of Stop.
func checkWired(e *examination) []Check {
	if e.inbox == "" {
		return []Check{e.noInbox()}
	}
	groups := distinct(e.of(settings.Stop, same))
	if len(groups) == 0 {
		return []Check{e.notWired()}
	}
	var all []Check
	var lines []string
	for _, g := range groups {
		all = append(all, e.wiredAs(g))
		lines = append(lines, g[0].line()+" ("+e.places(g)+")")
	}
	if len(groups) > 1 {
		all = append(all, warn("wired", "take out all but one", "%d different hooks serve %s, and all run at every stop: %s",
			len(groups), e.show(e.inbox), strings.Join(lines, "; ")))
	}
	return all
}

// noInbox says why nothing can be said about an inbox.
func (e *examination) noInbox() Check {
	const fix = "name it: heartbeat-stop doctor --inbox PATH"
	inboxes := e.wiredInboxes()
	if len(inboxes) > 1 {
		return fail("wired", fix, "several inboxes are wired, so none of their files was looked at: %s", strings.Join(inboxes, ", "))
	}
	for _, w := range e.wires {
		if w.Event == settings.Stop {
			return fail("wired", fix, "which inbox this serves cannot be told: %s (%s)", w.line(), e.show(w.source.path))
		}
	}
	return fail("wired", "wire it: heartbeat-stop install --inbox PATH", "no hook of Stop runs heartbeat-stop: %s", e.placesLooked())
}

func (e *examination) notWired() Check {
	if unclear := e.of(settings.Stop, untold); len(unclear) > 0 {
		w := unclear[0]
		return warn("wired", "name the inbox by its whole path in it", "whether this serves %s cannot be told: %s (%s)",
			e.show(e.inbox), w.line(), e.show(w.source.path))
	}
	return fail("wired", e.install(nil), "no hook of Stop serves %s: %s", e.show(e.inbox), e.placesLooked())
}

func (e *examination) wiredAs(group []*wire) Check {
	w := group[0]
	line, places := w.line(), e.places(group)
	named := w.Inbox
	if w.Exact && w.err == nil {
		named = w.hook.Inbox
	}
	switch {
	case w.Background:
		return fail("wired", "take async and asyncRewake out of "+w.Member+" in "+w.source.path,
			"Stop -> %s (%s) runs in the background: its decision comes too late, and what it delivers reaches nobody", line, places)
	case !filepath.IsAbs(named):
		return warn("wired", "name the inbox by its whole path: "+e.inbox,
			"Stop -> %s (%s): which file that is depends on the folder the session stands in", line, places)
	}
	return ok("wired", "Stop -> %s (%s)", line, places)
}

// checkEvents looks for the other events.
func checkEvents(e *examination) []Check {
	stop := e.of(settings.Stop, same)
	if len(stop) == 0 {
		return nil // told by checkWired
	}
	var there, missing []string
	for _, event := range []string{settings.StopFailure, settings.SessionStart, settings.SessionEnd, settings.UserPromptSubmit} {
		switch {
		case len(e.of(event, same)) > 0:
			there = append(there, event)
		case len(e.of(event, untold)) == 0:
			missing = append(missing, event)
		}
	}
	if len(missing) == 0 {
		return []Check{ok("events", "%s are wired as well", strings.Join(there, ", "))}
	}
	return []Check{warn("events", e.install(stop), "not wired: %s: `status` cannot tell whether a session lives, or why a turn failed",
		strings.Join(missing, ", "))}
}

// checkOthers looks for the hooks of other inboxes.
func checkOthers(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	groups := distinct(e.of(settings.Stop, other))
	if len(groups) == 0 {
		return []Check{ok("others", "no other inbox is wired for this project")}
	}
	var all []Check
	for _, g := range groups {
		inbox := g[0].inbox
		if inbox == "" {
			inbox = g[0].Inbox
		}
		all = append(all, warn("others", "take one of them out: "+quote("heartbeat-stop", "uninstall", "--inbox", inbox, "--settings", g[0].source.path),
			"another inbox, %s, is wired as well (%s): at every stop both hooks deliver", inbox, e.places(g)))
	}
	return all
}
