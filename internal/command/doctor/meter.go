package doctor

import (
	"os/exec"
	"slices"

	"heartbeat/internal/claude/settings"
)

// statusLine looks for the status line to which the client tells its own total.
func statusLine(e *examination) string {
	const without = "what entries cost is not held against the client's own total"
	shown, metered := e.statusLines()
	if metered == nil {
		if e.besides != "" && len(e.related(settings.Stop, same)) == 0 {
			return e.launchersMeter()
		}
		return "no status line runs heartbeat-stop meter: " + without + "; heartbeat install wires one"
	}
	m := metered.content.StatusLine.Meter(e.inbox)
	if metered != shown {
		e.warn(e.meterFix(shown, metered),
			"the status line of %s has precedence over the one in %s, which runs heartbeat-stop meter: %s", e.show(shown.Path), e.show(metered.Path), without)
		return ""
	}
	place := e.show(metered.Path)
	if !m.Plain {
		return "a status line that a person wrote runs " + m.Command + " (" + place + ")"
	}
	path, err := exec.LookPath(m.Command)
	if err != nil {
		e.warn("build all commands into one folder (see the README), then, with that build: "+e.installInto(metered.Path),
			"the status line's heartbeat-stop meter cannot be started, and nothing of yours is shown: %v (%s)", err, place)
	} else if e.MeterErr == nil && !sameFile(path, e.Meter) {
		e.warn("to wire the one of this build: "+e.installInto(metered.Path),
			"%s is another file than %s, which belongs to this command (%s)", m.Command, e.Meter, place)
	}
	return "the status line runs " + m.Command + " before what it shows (" + place + ")"
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
func (e *examination) launchersMeter() string {
	if e.MeterErr != nil {
		e.warn("build all commands into one folder (see the README)", "heartbeat-launch finds none to wire for its sessions: %v", e.MeterErr)
	}
	return "heartbeat-launch wires it for its own sessions, unless it has --no-meter"
}

// meterFix is the advice about a status line that hides the meter.
func (e *examination) meterFix(shown, metered *source) string {
	if shown.Managed {
		return "ask the administrator to take the statusLine out of " + shown.Path
	}
	return "take the statusLine out of " + shown.Path + ", or move the wiring there: " +
		quote("heartbeat", "uninstall", "--inbox", e.inbox, "--settings", metered.Path) + " && " + e.installInto(shown.Path)
}

// installInto returns the command that wires the inbox as it is now into a file.
func (e *examination) installInto(path string) string {
	return e.installLike(e.related(settings.Stop, same), path)
}
