package doctor

import (
	"slices"

	"heartbeat/internal/claude/settings"
)

// checkHooksOn looks for switches that keep the client from running hooks.
func checkHooksOn(e *examination) []Check {
	ours := func(w *wire) bool { return w.Event == settings.Stop && w.source.managed && e.relate(w) == same }
	managed := slices.ContainsFunc(e.wires, ours)
	// An administrator's hooks run even if a user disables all hooks.
	if s := e.switchedOn("disableAllHooks"); s != nil && (s.managed || !managed) {
		return []Check{fail("hooks-on", "take disableAllHooks out of "+s.path, "disableAllHooks is true in %s: no hook runs", e.show(s.path))}
	}
	for _, s := range e.sources {
		if s.managed && s.content.Switches["allowManagedHooksOnly"] && !managed {
			return []Check{fail("hooks-on", "ask the administrator to wire the hook in the managed settings",
				"allowManagedHooksOnly is true in %s: only hooks wired there run", s.path)}
		}
	}
	return []Check{ok("hooks-on", "no settings file keeps hooks from running")}
}

// switchedOn returns the file that decides about a switch, if it turns the switch on.
func (e *examination) switchedOn(name string) *source {
	for _, s := range slices.Backward(e.sources) {
		if on, set := s.content.Switches[name]; set {
			if on {
				return s
			}
			return nil
		}
	}
	return nil
}
