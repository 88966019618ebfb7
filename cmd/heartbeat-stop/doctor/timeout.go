package doctor

import (
	"fmt"
	"time"

	"heartbeat/internal/claude"
	"heartbeat/internal/settings"
)

// What the client gives a hook that states no timeout.
const (
	defaultTimeout    = 600 * time.Second
	defaultTimeoutOld = 60 * time.Second
)

// checkTimeout compares each hook's time with how long it waits.
func checkTimeout(e *examination) []Check {
	var all []Check
	for _, g := range distinct(e.of(settings.Stop, same)) {
		for _, w := range g {
			if w.Exact && w.err == nil {
				all = append(all, e.timeout(w))
			}
		}
	}
	return all
}

func (e *examination) timeout(w *wire) Check {
	limit, stated := w.Timeout, fmt.Sprintf("timeout %s", w.Timeout)
	if limit == 0 {
		limit = defaultTimeout
		if e.client.known && e.client.release.Before(claude.LongTimeout) {
			limit = defaultTimeoutOld
		}
		stated = fmt.Sprintf("no timeout, which is %s", limit)
	}
	place := w.Member + " in " + e.show(w.source.path)
	if !w.hook.Persist {
		return ok("timeout", "%s has %s, and never waits for an entry", place, stated)
	}
	if limit <= w.hook.Idle {
		return fail("timeout", e.install([]*wire{w}),
			"%s has %s and waits %s for an entry: the client ends it first, and the session stops", place, stated, w.hook.Idle)
	}
	return ok("timeout", "%s has %s and waits %s for an entry", place, stated, w.hook.Idle)
}
