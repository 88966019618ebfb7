package settings

import (
	"math"
	"time"
)

const (
	// hookTimeout is the client's default, in seconds.
	hookTimeout = 600
	// idleMargin is what the timeout leaves beyond the idle interval.
	idleMargin = 30 * time.Second
	// wakeTimeout is a year, in seconds: when it passes, the client ends a hook in
	// the background, and nothing wakes the session any more.
	wakeTimeout = 31_536_000
)

// Blocking is the wiring of a hook that ends the turn itself, and hands the next
// entry over by blocking the stop. idle is how long it may wait for one.
func Blocking(command string, args []string, idle time.Duration) Wiring {
	return Wiring{
		Command: command,
		Args:    args,
		Timeout: max(hookTimeout, int(math.Ceil((idle + idleMargin).Seconds()))),
		Events:  []string{Stop, StopFailure, SessionStart, SessionEnd, UserPromptSubmit, Notification},
		Env:     map[string]string{BlockCapEnv: "0"},
	}
}

// Waking is the wiring of a hook that waits in the background wherever the session
// sits idle next, and wakes it. The other events only note something, and are
// waited for.
func Waking(command string, args []string) Wiring {
	w := Blocking(command, args, 0)
	w.Background = []string{Stop, StopFailure, SessionStart}
	w.BackgroundTimeout, w.DropEnv = wakeTimeout, true
	return w
}
