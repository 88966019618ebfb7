package doctor

import (
	"slices"
	"strings"

	"heartbeat/internal/claude/settings"
)

// rewakes reports whether a hook waits in the background and wakes the idle session.
func (w *wire) rewakes() bool {
	if w.Exact && w.err == nil {
		return w.hook.Rewake
	}
	return slices.Contains(w.Flags, "--rewake")
}

// waits reports whether a hook with --rewake waits for an entry after its event. Hooks
// of other events only note something.
func (w *wire) waits() bool {
	return w.Event == settings.Stop || w.Event == settings.StopFailure || w.Event == settings.SessionStart
}

// misplaced reports a hook that waits for an entry although the client waits for the
// hook, or the reverse.
func (e *examination) misplaced(name string, w *wire) (c Check, wrong bool) {
	hook := w.Event + " -> " + w.line() + " (" + e.show(w.source.path) + ")"
	switch {
	case !w.rewakes() && w.Event == settings.Stop && w.Background:
		return fail(name, "take async and asyncRewake out of "+w.Member+" in "+w.source.path,
			"%s runs in the background: its decision comes too late, and what it delivers reaches nobody", hook), true
	case w.rewakes() && w.waits() && !w.Background:
		return fail(name, e.install([]*wire{w}),
			"%s waits for an entry with --rewake and is not in the background (asyncRewake): it holds the session up until one comes", hook), true
	case w.rewakes() && w.waits() && !w.Wakes:
		return fail(name, e.install([]*wire{w}), "%s is in the background by async and not by asyncRewake: what it delivers wakes nobody", hook), true
	}
	return Check{}, false
}

// wakers returns the hooks that wait with --rewake for an entry of the inbox.
func (e *examination) wakers() []*wire {
	return e.waiting((*wire).rewakes)
}

// waiting returns the hooks of the inbox that wait for an entry and satisfy a
// condition.
func (e *examination) waiting(which func(*wire) bool) []*wire {
	var found []*wire
	for _, w := range e.wires {
		if w.waits() && which(w) && e.relate(w) == same {
			found = append(found, w)
		}
	}
	return found
}

// bothWirings reports an inbox whose entries some hooks hand over at a stop, while
// others wake the session for them.
func (e *examination) bothWirings() (c Check, both bool) {
	wake := e.wakers()
	block := e.waiting(func(w *wire) bool { return w.Event == settings.Stop && !w.rewakes() })
	if len(wake) == 0 || len(block) == 0 {
		return Check{}, false
	}
	return warn("wired", e.keepOne(block[0], wake[0]), "%s is wired both ways, and each takes entries that the other waits for: "+
		"to block the stop, %s; to wake the session, %s", e.show(e.inbox), e.members(block), e.members(wake)), true
}

// keepOne returns the advice about two hooks of one inbox. install removes surplus ones
// from its own file.
func (e *examination) keepOne(a, b *wire) string {
	if a.source == b.source {
		return "keep one of them: " + e.install([]*wire{a}) + ", or " + e.install([]*wire{b})
	}
	return "take one of them out: " + uninstall(e.inbox, a) + ", or " + uninstall(e.inbox, b)
}

// members names the files and places of hooks.
func (e *examination) members(wires []*wire) string {
	var places []string
	for _, w := range wires {
		places = append(places, e.place(w))
	}
	return strings.Join(places, ", ")
}
