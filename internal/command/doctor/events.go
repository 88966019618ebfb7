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
