package doctor

import (
	"fmt"
	"time"

	"heartbeat/internal/claude"
	"heartbeat/internal/claude/settings"
)

// The client's timeouts of hooks that state none.
const (
	defaultTimeout    = 600 * time.Second
	defaultTimeoutOld = 60 * time.Second
	// shortStay is the least timeout that makes sense for a hook in the background: longer
	// than a session is idle. install gives it a year.
	shortStay = 24 * time.Hour
)

// checkTimeout compares each hook's timeout with how long it waits.
func checkTimeout(e *examination) []Check {
	var all []Check
	for _, g := range distinct(e.related(settings.Stop, same)) {
		for _, w := range g {
			if w.Exact && w.err == nil && !w.hook.Rewake {
				all = append(all, e.timeout(w))
			}
		}
	}
	return append(all, e.stays()...)
}

// stays checks how long the hooks in the background may wait for an entry.
func (e *examination) stays() []Check {
	var all []Check
	long := 0
	for _, w := range e.wakers() {
		limit, stated := e.limit(w)
		switch {
		case !w.Wakes: // checkWired and checkEvents report it
		case limit < shortStay:
			all = append(all, fail("timeout", e.install([]*wire{w}),
				"%s has %s in the background: the client ends it then, and nothing wakes the session any more", e.place(w), stated))
		default:
			long++
		}
	}
	if long > 0 && len(all) == 0 {
		all = append(all, ok("timeout", "each hook in the background has at least %s to wait for an entry", shortStay))
	}
	return all
}

func (e *examination) timeout(w *wire) Check {
	limit, stated := e.limit(w)
	place := e.place(w)
	if !w.hook.Persist {
		return ok("timeout", "%s has %s, and never waits for an entry", place, stated)
	}
	if limit <= w.hook.Idle {
		return fail("timeout", e.install([]*wire{w}),
			"%s has %s and waits %s for an entry: the client ends it first, and the session stops", place, stated, w.hook.Idle)
	}
	return ok("timeout", "%s has %s and waits %s for an entry", place, stated, w.hook.Idle)
}

// limit returns a hook's timeout, and how the file spells it.
func (e *examination) limit(w *wire) (limit time.Duration, stated string) {
	if w.Timeout != 0 {
		return w.Timeout, fmt.Sprintf("timeout %s", w.Timeout)
	}
	limit = defaultTimeout
	if e.client.known && e.client.release.Before(claude.LongTimeout) {
		limit = defaultTimeoutOld
	}
	return limit, fmt.Sprintf("no timeout, which is %s", limit)
}
