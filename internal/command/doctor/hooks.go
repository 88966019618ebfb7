package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

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

// checkCap looks for the variable that lifts the client's cap on blocks in a row.
func checkCap(e *examination) []Check {
	if e.neverBlocks() {
		return []Check{ok("cap", "no hook of Stop blocks it, so nothing counts towards the cap")}
	}
	if e.inbox != "" && len(e.related(settings.Stop, same)) == 0 {
		if _, plugin := e.wiredByPlugin(); plugin {
			return []Check{ok("cap", "the plugin keeps below it")}
		}
		if _, launched := e.wiredByLauncher(); launched {
			return []Check{ok("cap", "heartbeat-launch lifts it for its own sessions")}
		}
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

// checkBinary looks at the programs that the hooks of the inbox start.
func checkBinary(e *examination) []Check {
	var all []Check
	var seen []string
	if e.StopErr != nil {
		all = append(all, warn("binary", "build all commands into one folder (see the README)", "there is no hook for install to wire: %v", e.StopErr))
	}
	for _, w := range e.wires {
		if e.inbox == "" || e.relate(w) != same || slices.Contains(seen, w.Binary) {
			continue
		}
		seen = append(seen, w.Binary)
		if !w.Exact {
			all = append(all, warn("binary", e.execForm(w), "which program this starts is up to a shell: %s (%s)", w.line(), e.show(w.source.path)))
			continue
		}
		all = append(all, e.binary(w))
		if path := besideHook(w.Binary); path != "" && w.err == nil && len(w.hook.Runs) > 0 && runnable(path) != nil {
			all = append(all, warn("binary", "build all commands into one folder (see the README)",
				"%s cannot be started, which takes over from the hook beside it for its babysitter runs: the hook needs one on the PATH of the session", path))
		}
	}
	return all
}

// besideHook returns where a hook looks first for the command that drives its runs. It is
// "" for a hook that is not there, of which another check tells.
func besideHook(hook string) string {
	hook, err := filepath.EvalSymlinks(hook)
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(hook), "heartbeat")
}

// execForm returns the advice about a hook in shell form.
func (e *examination) execForm(w *wire) string {
	return "take that line out of " + w.source.path + ", then: " + e.install([]*wire{w})
}

func (e *examination) binary(w *wire) Check {
	path, fix := w.Binary, "build it (see the README), then, with that build: "+e.install([]*wire{w})
	if !filepath.IsAbs(path) {
		found, there := e.lookPath(path)
		if !there || path != filepath.Base(path) {
			return fail("binary", fix, "%s is no absolute path, and not on the PATH of this shell", path)
		}
		return warn("binary", fix, "%s is no absolute path: here it is %s, and in a session whatever its PATH says", path, found)
	}
	if err := runnable(path); err != nil {
		return fail("binary", fix, "the hook cannot be started: %v", err)
	}
	switch {
	case e.StopErr != nil:
		return ok("binary", "%s can be started", path)
	case !sameFile(path, e.Stop):
		return warn("binary", "to wire the one of this build: "+e.install([]*wire{w}), "%s is another file than %s, which belongs to this command", path, e.Stop)
	}
	return ok("binary", "%s belongs to this command", path)
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%s (mode %04o) is not executable: %w", path, info.Mode().Perm(), err)
	}
	return nil
}

// sameFile follows links on both sides.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
