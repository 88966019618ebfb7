package settings

import (
	"math"
	"time"
)

const (
	// hookTimeout is the client's default, in seconds.
	hookTimeout = 600
	// idleMargin is by how much the timeout exceeds the idle interval.
	idleMargin = 30 * time.Second
	// wakeTimeout is a year, in seconds. When it passes, the client ends the hook in
	// the background, and nothing wakes the session any more.
	wakeTimeout = 31_536_000
)

// Blocking is the wiring of a hook that delivers the next entry by blocking the
// stop. idle is how long the hook may wait for an entry.
func Blocking(command string, args []string, idle time.Duration) Wiring {
	return Wiring{
		Command: command,
		Args:    args,
		Timeout: max(hookTimeout, int(math.Ceil((idle + idleMargin).Seconds()))),
		Events:  []string{Stop, StopFailure, SessionStart, SessionEnd, UserPromptSubmit, Notification, PostToolBatch},
		Env:     map[string]string{BlockCapEnv: "0"},
	}
}

// Lines is the wiring for Codex, which takes hooks as lines for a shell: see [Wiring.Line].
func Lines(command string, args []string, idle time.Duration) Wiring {
	w := Blocking(command, args, idle)
	w.Line, w.Events, w.Env = true, []string{Stop, SessionStart, SessionEnd, UserPromptSubmit}, nil
	return w
}

// Waking is the wiring of a hook that waits in the background while the session is
// idle, and wakes it for an entry. The client waits for the hooks of the other
// events, which only record something.
func Waking(command string, args []string) Wiring {
	w := Blocking(command, args, 0)
	w.Background = []string{Stop, StopFailure, SessionStart}
	w.BackgroundTimeout, w.DropEnv = wakeTimeout, true
	return w
}
