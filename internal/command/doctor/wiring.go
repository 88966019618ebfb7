package doctor

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hook"
	"heartbeat/internal/machine"
)

func settingsFiles(e *examination) string {
	var read []string
	for _, s := range e.sources {
		switch {
		case s.err != nil:
			e.fail("correct "+s.Path+", or take it away", "%s: %v", e.show(s.Path), s.err)
		case s.there && s.content.Meter:
			e.warn("take the meter out of statusLine in "+s.Path+", and leave what stands behind --then",
				"%s: the status line runs the meter of an earlier release, which is no more, so that nothing is shown", e.show(s.Path))
		case s.there:
			read = append(read, e.show(s.Path))
		}
	}
	if len(read) == 0 {
		return "there is no settings file: " + e.searched()
	}
	return "read " + strings.Join(read, ", ")
}

func hooksOn(e *examination) string {
	managed := slices.ContainsFunc(e.related(settings.Stop, same), func(w *wire) bool { return w.file.Managed })
	files, contents := []settings.File{}, map[settings.File]settings.Content{}
	for _, s := range e.sources {
		files, contents[s.File] = append(files, s.File), s.content
	}
	if off := settings.HooksOff(files, func(f settings.File) settings.Content { return contents[f] }, managed); off != nil {
		e.fail(off.Fix(), "%s is true in %s, which keeps the hooks from running", off.Member, e.show(off.Path))
	}
	return "no settings file keeps hooks from running"
}

func wired(e *examination) string {
	if e.inbox == "" {
		return e.noInbox()
	}
	stops, unclear := e.related(settings.Stop, same), e.related(settings.Stop, untold)
	switch {
	case len(stops) == 0 && e.besides != "":
		return e.besides
	case len(stops) == 0 && len(unclear) > 0:
		return e.warn("name the inbox by its whole path in it", "whether this serves %s cannot be told: %s", e.show(e.inbox), e.where(unclear[0]))
	case len(stops) == 0:
		return e.fail(e.install(), "no hook of Stop serves %s: %s", e.show(e.inbox), e.searched())
	}
	for _, w := range stops {
		if fault := e.fault(w); fault != "" {
			e.fail(e.install(w), "%s %s", e.where(w), fault)
		}
	}
	rivals := stops
	if slices.ContainsFunc(stops, func(w *wire) bool { return !w.rewakes() }) {
		rivals = e.takers() // a hook of another event that wakes the session takes entries, too
	}
	groups := e.distinct(rivals)
	if len(groups) > 1 {
		var places []string
		for _, g := range groups {
			places = append(places, e.where(g...))
		}
		fix := "take one of them out: " + e.uninstall(e.inbox, groups[0][0]) + ", or " + e.uninstall(e.inbox, groups[1][0])
		if groups[0][0].file == groups[1][0].file { // install removes extra hooks from its own file
			fix = "keep one of them: " + e.install(groups[0][0]) + ", or " + e.install(groups[1][0])
		}
		e.warn(fix, "%d hooks serve %s, and each takes entries that the other waits for: %s", len(groups), e.show(e.inbox), strings.Join(places, "; "))
	}
	named := stops[0].Inbox
	if stops[0].Exact && stops[0].err == nil {
		named = stops[0].hook.Inbox
	}
	if !filepath.IsAbs(named) {
		e.warn("name the inbox by its whole path: "+e.inbox, "%s: which file that is depends on the folder the session stands in", e.where(stops[0]))
	}
	how := ": it hands an entry over when a turn ends"
	if stops[0].rewakes() && !e.Codex {
		how = ": it wakes the idle session, which has to be interactive"
	}
	return e.where(e.distinct(stops)[0]...) + how
}

func (e *examination) noInbox() string {
	const fix = "name it: heartbeat doctor --inbox PATH"
	if several := e.wiredInboxes(); len(several) > 1 {
		return e.fail(fix, "several inboxes are wired, so none of their files was looked at: %s", strings.Join(several, ", "))
	}
	if i := slices.IndexFunc(e.wires, (*wire).stops); i >= 0 {
		return e.fail(fix, "which inbox this serves cannot be told: %s", e.where(e.wires[i]))
	}
	next := "heartbeat init"
	if e.Codex {
		next += " --launcher && heartbeat install --agent codex"
	}
	return e.fail("in "+e.Project+": "+next, "no hook of Stop runs heartbeat-stop: %s", e.searched())
}

// wiredBesides describes what wires the inbox without a settings file, "" for nothing. That is heartbeat's plugin for
// Claude Code, unless it stands back for a hook of any inbox, or heartbeat-launch, which wires its own sessions.
func (e *examination) wiredBesides() string {
	served := cmp.Or(e.effective(cli.InboxVariable), cli.DefaultInbox)
	if !filepath.IsAbs(served) {
		served = filepath.Join(e.Project, served)
	}
	standsBack := slices.ContainsFunc(e.wires, func(w *wire) bool { return !w.file.Managed && !slices.Contains(e.Settings, w.file.Path) })
	decided := false // by the strongest file that names the plugin
	for _, s := range slices.Backward(e.sources) {
		for name, on := range s.content.Plugins {
			if plugin, _, _ := strings.Cut(name, "@"); plugin != "heartbeat" || decided {
				continue
			}
			if decided = true; on && !standsBack && inbox.SameInbox(served, e.inbox) {
				return fmt.Sprintf("the plugin %s (enabledPlugins in %s) brings the hooks, and serves this inbox", name, e.show(s.Path))
			}
		}
	}
	lock := e.beside(".launch-lock")
	if there, err := disk.Exists(lock); err != nil || !there {
		return ""
	}
	now := "none runs now: a session that is started without it does not ask"
	if pid := machine.LockHolder(lock); pid > 0 {
		now = fmt.Sprintf("process %d works on it now", pid)
	}
	return "heartbeat-launch wires the hook for its own sessions (--inbox " + e.show(e.inbox) + "), and has done so: " + now
}

// fault returns what is wrong with the way the client runs a hook, or "".
func (e *examination) fault(w *wire) string {
	switch waits := w.rewakes() && waitsAfter(w.Event); {
	case w.Skipped:
		return "has a timeout that is no number above 0: Claude Code skips the hook"
	case e.Codex && w.rewakes():
		return "has --rewake, and Codex runs no hooks in the background: it hands nothing over"
	case waits && !w.Wakes:
		return "waits for an entry with --rewake and is not in the background by asyncRewake: it wakes nobody"
	case w.Background && (w.Event == settings.Stop && !waits || w.Event == settings.UserPromptSubmit && w.rewakes()):
		return "runs in the background: what it decides comes too late and reaches nobody"
	}
	return ""
}

// lost has what is lost without the hook of an event.
var lost = map[string]string{
	settings.StopFailure:      "why a turn failed is not known, and with --rewake nothing wakes the session after it",
	settings.SessionStart:     "whether a session lives is not known, and with --rewake it is woken only after its first turn",
	settings.SessionEnd:       "that a session has ended is not known",
	settings.UserPromptSubmit: "a person's prompts are not known: with --rewake the answer to an entry cannot be told from other turns",
	settings.Notification:     "that a session waits for a person is not known",
	settings.PostToolBatch:    "what an entry costs is held against its limits only when its turn has ended",
}

func events(e *examination) string {
	stops := e.related(settings.Stop, same)
	if len(stops) == 0 {
		return "" // another check reports it
	}
	wanted, waking := settings.Blocking("", nil, 0).Events, !e.Codex && slices.ContainsFunc(stops, (*wire).rewakes)
	if e.Codex {
		wanted = settings.Lines("", nil, 0).Events
	}
	var there, missing []string
	state := Warn
	for _, event := range wanted[1:] {
		mine, bad := e.related(event, same), false
		for _, w := range mine {
			if fault := e.fault(w); fault != "" {
				bad = true
				e.fail(e.install(w), "%s %s", e.where(w), fault)
			}
		}
		needed := waking && (event == settings.UserPromptSubmit || waitsAfter(event))
		switch {
		case bad:
		case slices.ContainsFunc(mine, func(w *wire) bool { return !needed || w.rewakes() }):
			there = append(there, event)
		case len(e.related(event, untold)) == 0:
			missing = append(missing, event+" ("+lost[event]+")")
			if needed && event == settings.UserPromptSubmit {
				state = Fail
			}
		}
	}
	if len(missing) > 0 {
		e.note(state, e.install(stops[0]), "not wired as that of Stop is: "+strings.Join(missing, ", "))
	}
	if len(there) == 0 {
		return ""
	}
	return strings.Join(there, ", ") + " are wired as well"
}

// rewire returns the command that makes the project's sessions work on the project's own inbox. It returns "" unless
// they work on another one, as in a copy of the project that the hook was wired for.
func (e *examination) rewire() string {
	stops := slices.DeleteFunc(e.related(settings.Stop, same), func(w *wire) bool { // a hook for all projects stays
		return !strings.HasPrefix(w.file.Path, e.Project+string(filepath.Separator))
	})
	if e.Inbox != "" || e.Found == "" || len(stops) == 0 || inbox.SameInbox(e.Found, e.inbox) {
		return ""
	}
	return e.uninstall(e.inbox, stops[0]) + " && " + strings.Replace(e.install(stops[0]), quote(e.inbox), quote(e.Found), 1)
}

func others(e *examination) string {
	if fix := e.rewire(); fix != "" {
		e.warn(fix, "sessions here work on the inbox %s, and this project has one of its own, %s: was it copied or moved?", e.inbox, e.Found)
	}
	for _, g := range e.distinct(e.related(settings.Stop, other)) {
		inbox, does := cmp.Or(g[0].inbox, g[0].Inbox), "as well (%s): at every stop both hooks deliver"
		if e.besides == "" && len(e.related(settings.Stop, same)) == 0 {
			does = "instead (%s): sessions work on that one alone, and the plugin would stand back"
		}
		e.warn("take one of them out: "+e.uninstall(inbox, g[0]), "another inbox, %s, is wired "+does, inbox, e.places(g))
	}
	return "no other inbox is wired for this project"
}

func flags(e *examination) string {
	var taken []string
	for _, g := range e.distinct(e.related("", same)) {
		switch w := g[0]; {
		case !w.Exact:
			e.warn("take that line out of "+w.file.Path+", then: "+e.install(w), "what a shell makes of this cannot be told, nor which program it starts: %s", e.where(w))
		case w.err != nil:
			e.fail("correct the arguments of "+w.Member+" in "+w.file.Path, "the hook does not take %s, and then approves every stop: %v", quote(w.Flags...), w.err)
		case !slices.Contains(taken, quote(w.Flags...)):
			taken = append(taken, quote(w.Flags...))
		}
	}
	if len(taken) == 0 {
		return ""
	}
	return "the hook takes " + strings.Join(taken, "; ")
}

func binary(e *examination) string {
	const folder = "build all commands into one folder (see the README)"
	if e.StopErr != nil {
		e.warn(folder, "there is no hook for install to wire: %v", e.StopErr)
	}
	var seen []string
	for _, w := range e.related("", same) {
		if !w.Exact || slices.Contains(seen, w.Binary) {
			continue
		}
		path, fix := w.Binary, "build it (see the README), then, with that build: "+e.install(w)
		seen = append(seen, path)
		found, err := exec.LookPath(path)
		its, _ := os.Stat(path)
		own, _ := os.Stat(e.Stop)
		switch named := path == filepath.Base(path); {
		case !filepath.IsAbs(path) && (err != nil || !named):
			e.fail(fix, "%s is no absolute path, and not on the PATH of this shell", path)
		case named:
			e.warn(fix, "%s is no absolute path: here it is %s, and in a session whatever its PATH says", path, found)
		case err != nil:
			e.fail(fix, "the hook cannot be started: %v", err)
		case e.StopErr == nil && !os.SameFile(its, own): // also if one is missing
			e.warn("to wire the one of this build: "+e.install(w), "%s is another file than %s, which belongs to this command", path, e.Stop)
		}
		// A missing hook has no folder, and is reported above.
		if real, err := filepath.EvalSymlinks(path); err == nil && w.err == nil && len(w.hook.Runs.Dirs) > 0 {
			if _, err := exec.LookPath(filepath.Join(filepath.Dir(real), "heartbeat")); err != nil {
				e.warn(folder, "the heartbeat beside the hook cannot be started, which the hook needs for its babysitter runs, unless the PATH of the session has one: %v", err)
			}
		}
	}
	switch {
	case len(seen) == 0:
		return ""
	case e.StopErr != nil:
		return strings.Join(seen, ", ") + " can be started"
	}
	return strings.Join(seen, ", ") + " belongs to this command"
}

// shortStay is the least sensible timeout of a background hook: a session may be idle so long. install sets a year.
const shortStay = 24 * time.Hour

func timeout(e *examination) (well string) {
	for _, w := range e.takers() {
		if w.err != nil || e.fault(w) != "" {
			continue // other checks report it
		}
		limit, stated, idle := w.Timeout, fmt.Sprintf("timeout %s", w.Timeout), time.Duration(w.hook.Idle)
		if limit == 0 {
			limit, stated = defaultTimeout, fmt.Sprintf("no timeout, which is %s", defaultTimeout)
		}
		place := w.Member + " in " + e.show(w.file.Path) + " has " + stated
		switch persists := w.Exact && w.hook.Mode == hook.ModePersist; {
		case w.rewakes() && limit < shortStay:
			e.fail(e.install(w), "%s in the background: the client ends it then, and nothing wakes the session any more", place)
		case w.rewakes():
			well = fmt.Sprintf("each hook in the background has at least %s to wait for an entry", shortStay)
		case w.Exact && limit <= w.hook.Orphan.Checks.Longest():
			e.fail(e.install(w), "%s and its checks may take %s: the client ends them first, and their entries are not answered", place, w.hook.Orphan.Checks.Longest())
		case persists && limit <= idle:
			e.fail(e.install(w), "%s and waits %s for an entry: the client ends it first, and the session stops", place, idle)
		case persists:
			well = fmt.Sprintf("%s and waits %s for an entry", place, idle)
		case w.Exact:
			well = place + ", and never waits for an entry"
		}
	}
	return well
}

const defaultTimeout = 600 * time.Second // what the client gives a hook that states none

func blockCap(e *examination) string {
	blocks := func(w *wire) bool { return w.stops() && !w.rewakes() }
	switch {
	case slices.ContainsFunc(e.wires, (*wire).stops) && !slices.ContainsFunc(e.wires, blocks):
		return "no hook of Stop blocks it, so nothing counts towards the cap"
	case e.besides != "" && len(e.related(settings.Stop, same)) == 0:
		return "the plugin keeps below it, and heartbeat-launch lifts it for its own sessions"
	}
	path, where := filepath.Join(e.Project, ".claude", "settings.json"), "the environment"
	value := e.effective(settings.BlockCapEnv)
	if _, source := e.setting(settings.BlockCapEnv); source != nil {
		path, where = source.Path, "env of "+e.show(source.Path)
	}
	have := settings.BlockCapEnv + " is " + cmp.Or(value, "not set") + " in " + where
	if value != "0" {
		e.fail(fmt.Sprintf(`in "env" of %s: "%s": "0"`, path, settings.BlockCapEnv), "%s: Claude Code swallows the ninth entry in a row that is answered without a tool", have)
	}
	return have
}
