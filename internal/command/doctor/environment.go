package doctor

import (
	"strings"

	"heartbeat/internal/claude"
)

// checkEnvironment looks for variables that a session started from here should not
// inherit.
func checkEnvironment(e *examination) []Check {
	names := claude.Identity(e.Environ)
	var why []string
	if len(names) > 0 {
		why = append(why, strings.Join(names, ", ")+": a session started from here takes itself for another one's child and writes no transcript")
	}
	if e.variable("CI") != "" {
		names = append(names, "CI")
		why = append(why, "CI: a session started from here takes itself for one of a pipeline")
	}
	if len(names) == 0 {
		return []Check{ok("environment", "it has nothing of another session, and no CI")}
	}
	return []Check{warn("environment", "env -u "+strings.Join(names, " -u ")+" claude", "set: %s", strings.Join(why, "; "))}
}
