package doctor

import (
	"fmt"
	"path/filepath"

	"heartbeat/internal/claude/settings"
)

// checkCap looks for the variable that lifts the client's cap on blocks in a row.
func checkCap(e *examination) []Check {
	if e.neverBlocks() {
		return []Check{ok("cap", "no hook of Stop blocks it, so nothing counts towards the cap")}
	}
	if _, launched := e.wiredByLauncher(); launched && e.inbox != "" && len(e.related(settings.Stop, same)) == 0 {
		return []Check{ok("cap", "heartbeat-launch lifts it for its own sessions")}
	}
	value, source := e.setting(settings.BlockCapEnv)
	where := "the environment"
	if source != nil {
		where = "env of " + e.show(source.path)
	} else {
		value = e.variable(settings.BlockCapEnv)
	}
	if value == "0" {
		return []Check{ok("cap", "%s is 0 in %s", settings.BlockCapEnv, where)}
	}
	have := fmt.Sprintf("%s is %q in %s", settings.BlockCapEnv, value, where)
	if value == "" {
		have = settings.BlockCapEnv + " is not set"
	}
	return []Check{fail("cap", e.capFix(source), "%s: Claude Code swallows the ninth entry in a row that is answered without a tool", have)}
}

// neverBlocks reports whether there are Stop hooks, all of which wake the session.
func (e *examination) neverBlocks() bool {
	wakes := false
	for _, w := range e.wires {
		if w.Event == settings.Stop {
			if !w.rewakes() {
				return false
			}
			wakes = true
		}
	}
	return wakes
}

func (e *examination) capFix(source *source) string {
	path := filepath.Join(e.Project, ".claude", "settings.json")
	if source != nil {
		path = source.path
	} else if mine := e.related(settings.Stop, same); len(mine) > 0 {
		path = mine[0].source.path
	}
	return fmt.Sprintf(`in "env" of %s: "%s": "0"`, path, settings.BlockCapEnv)
}
