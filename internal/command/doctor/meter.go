package doctor

import (
	"path/filepath"
	"slices"

	"heartbeat/internal/claude/settings"
)

// checkMeter looks for the status line to which the client tells its own total.
func checkMeter(e *examination) []Check {
	if e.inbox == "" {
		return nil
	}
	const without = "what entries cost is not held against the client's own total"
	shown, metered := e.statusLines()
	if metered == nil {
		if _, launched := e.wiredByLauncher(); launched && len(e.related(settings.Stop, same)) == 0 {
			return []Check{e.launchersMeter()}
		}
		return []Check{ok("meter", "no status line runs heartbeat-stop meter: %s; heartbeat install wires one", without)}
	}
	m := metered.content.StatusLine.Meter(e.inbox)
	if metered != shown {
		return []Check{warn("meter", e.meterFix(shown, metered),
			"the status line of %s has precedence over the one in %s, which runs heartbeat-stop meter: %s", e.show(shown.path), e.show(metered.path), without)}
	}
	place := e.show(metered.path)
	if !m.Plain {
		return []Check{ok("meter", "a status line that a person wrote runs %s (%s)", m.Command, place)}
	}
	path := m.Command
	if found, there := e.lookPath(path); there && path == filepath.Base(path) {
		path = found
	}
	if err := runnable(path); err != nil {
		return []Check{warn("meter", "build all commands into one folder (see the README), then, with that build: "+e.installInto(metered.path),
			"the status line's heartbeat-stop meter cannot be started, and nothing of yours is shown: %v (%s)", err, place)}
	}
	if e.MeterErr == nil && !sameFile(path, e.Meter) {
		return []Check{warn("meter", "to wire the one of this build: "+e.installInto(metered.path),
			"%s is another file than %s, which belongs to this command (%s)", m.Command, e.Meter, place)}
	}
	return []Check{ok("meter", "the status line runs %s before what it shows (%s)", m.Command, place)}
}

// statusLines returns the file whose status line the client runs, and the strongest one
// whose status line counts for the inbox; nil for none.
func (e *examination) statusLines() (shown, metered *source) {
	for _, s := range slices.Backward(e.sources) {
		line := s.content.StatusLine
		if line == nil {
			continue
		}
		if shown == nil {
			shown = s
		}
		if metered == nil && line.Meter(e.inbox) != nil {
			metered = s
		}
	}
	return shown, metered
}

// launchersMeter is the check for sessions of heartbeat-launch.
func (e *examination) launchersMeter() Check {
	if e.MeterErr != nil {
		return warn("meter", "build all commands into one folder (see the README)", "heartbeat-launch finds none to wire for its sessions: %v", e.MeterErr)
	}
	return ok("meter", "heartbeat-launch wires it for its own sessions, unless it has --no-meter")
}

// meterFix is the advice about a status line that hides the meter.
func (e *examination) meterFix(shown, metered *source) string {
	if shown.managed {
		return "ask the administrator to take the statusLine out of " + shown.path
	}
	return "take the statusLine out of " + shown.path + ", or move the wiring there: " +
		quote("heartbeat", "uninstall", "--inbox", e.inbox, "--settings", metered.path) + " && " + e.installInto(shown.path)
}

// installInto returns the command that wires the inbox as it is now into a file.
func (e *examination) installInto(path string) string {
	return e.installLike(e.related(settings.Stop, same), path)
}

// checkPrices looks at the table by which requests are priced.
func checkPrices(e *examination) []Check {
	if e.inbox == "" || e.Prices == nil {
		return nil
	}
	if says := e.Prices(e.inbox); says != "" {
		return []Check{warn("prices", "see heartbeat costs --prices, and mend heartbeat/prices.toml in the folder of your settings", "%s", says)}
	}
	return nil
}

// checkLimits looks for sessions whose spending is held against limits and cannot be
// counted.
func checkLimits(e *examination) (all []Check) {
	if e.inbox == "" || e.NotCounted == nil {
		return nil
	}
	for _, sentence := range e.NotCounted(e.inbox) {
		all = append(all, warn("limits", "mend that; what was not counted is counted then", "%s", sentence))
	}
	return all
}
