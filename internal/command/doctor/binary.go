package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

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
