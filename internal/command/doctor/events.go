package doctor

import (
	"slices"
	"strings"

	"heartbeat/internal/claude/settings"
)

// checkEvents looks for the other events.
func checkEvents(e *examination) []Check {
	stop := e.related(settings.Stop, same)
	if len(stop) == 0 {
		return nil // checkWired reports it
	}
	events := []string{
		settings.StopFailure, settings.SessionStart, settings.SessionEnd, settings.UserPromptSubmit, settings.Notification, settings.PostToolBatch,
	}
	if !slices.ContainsFunc(stop, (*wire).rewakes) {
		return []Check{e.events(stop, events)}
	}
	var all []Check
	var rest []string
	for _, event := range events {
		if c, wrong := e.rewakeEvent(event); wrong {
			all = append(all, c)
		} else {
			rest = append(rest, event)
		}
	}
	return append(all, e.events(stop, rest))
}

// events checks whether events are wired, in any form.
func (e *examination) events(stop []*wire, events []string) Check {
	var there, missing []string
	for _, event := range events {
		switch {
		case len(e.related(event, same)) > 0:
			there = append(there, event)
		case len(e.related(event, untold)) == 0:
			missing = append(missing, event)
		}
	}
	if len(missing) == 0 {
		return ok("events", "%s are wired as well", strings.Join(there, ", "))
	}
	without := "`status` cannot tell whether a session lives or waits for a person, or why a turn failed"
	if slices.Equal(missing, []string{settings.PostToolBatch}) {
		without = "what an entry costs is held against its limits only when its turn has ended"
	}
	return warn("events", e.install(stop), "not wired: %s: %s", strings.Join(missing, ", "), without)
}

// rewakeEvent says what an event lacks where the Stop hook wakes the session.
func (e *examination) rewakeEvent(event string) (c Check, wrong bool) {
	if len(e.related(event, untold)) > 0 {
		return Check{}, false
	}
	switch event {
	case settings.StopFailure:
		return e.waking(event, "after a turn that failed nothing wakes the session until another one ends")
	case settings.SessionStart:
		return e.waking(event, "a session that was just started is woken only after its first turn")
	case settings.UserPromptSubmit:
		waited := func(w *wire) bool { return w.rewakes() && !w.Background }
		if !slices.ContainsFunc(e.related(event, same), waited) {
			return fail("events", e.install(e.wakers()), "%s is not wired with --rewake and outside the background: "+
				"the answer to an entry cannot be told from the session's other turns", event), true
		}
	}
	return Check{}, false
}

// waking checks whether the session is woken after an event. without says what happens
// if not.
func (e *examination) waking(event, without string) (c Check, wrong bool) {
	woken := false
	for _, w := range e.related(event, same) {
		if c, wrong := e.misplaced("events", w); wrong {
			return c, true
		}
		woken = woken || w.rewakes()
	}
	if woken {
		return Check{}, false
	}
	return warn("events", e.install(e.wakers()), "%s is not wired with --rewake in the background: %s", event, without), true
}

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
