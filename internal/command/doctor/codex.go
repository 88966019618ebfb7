package doctor

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/claude/settings"
	clients "heartbeat/internal/supervise/client"
)

// codexEvents are what install wires, as Codex spells them; the first hands entries over.
var codexEvents = map[string]string{
	"stop": settings.Stop, "sessionStart": settings.SessionStart, "sessionEnd": settings.SessionEnd, "userPromptSubmit": settings.UserPromptSubmit,
}

// codexExamination has what the checks of Codex need, beside what all checks do.
type codexExamination struct {
	*examination
	program string // "" when there is none
	version string
	err     error // why it could not be asked
	any     bool  // it knows hooks of some kind
}

// Codex makes all checks for an inbox that sessions of Codex serve.
func Codex(in Input) []Check {
	e := examineCodex(in)
	all := slices.Concat(e.checkProgram(), e.checkHooks())
	for _, look := range []func(*examination) []Check{checkDirectory, checkFiles, checkFileSystem, checkLeftovers, checkState, checkRuns} {
		all = append(all, look(e.examination)...)
	}
	return all
}

func examineCodex(in Input) *codexExamination {
	e := &codexExamination{examination: &examination{Input: in, inbox: in.Inbox}}
	program, there := in.lookPath("codex")
	if !there {
		return e
	}
	e.program = program
	ctx, cancel := context.WithTimeout(context.Background(), versionLimit)
	defer cancel()
	if text, err := in.Version(ctx, program); err == nil {
		e.version = strings.TrimSpace(text)
	}
	hooks, err := in.CodexHooks(context.Background(), program)
	e.err, e.any = err, len(hooks) > 0
	for _, h := range hooks {
		if event := codexEvents[h.Event]; event != "" && mentionsHook.MatchString(h.Command) {
			w := &wire{source: &source{path: h.Path}, codex: h}
			w.Event, w.Command, w.Timeout = event, h.Command, time.Duration(h.Timeout)*time.Second
			w.Binary, w.Flags, w.Exact = settings.SplitLine(h.Command)
			e.resolve(w)
			e.wires = append(e.wires, w)
		}
	}
	if inboxes := e.wiredInboxes(); e.inbox == "" && len(inboxes) == 1 {
		e.inbox = inboxes[0]
	}
	return e
}

var mentionsHook = regexp.MustCompile(`\bheartbeat-stop\b`)

func (e *codexExamination) checkProgram() []Check {
	const fix = "install Codex (npm install -g @openai/codex), or put it on the PATH"
	switch {
	case e.program == "":
		return []Check{fail("client", fix, "there is no codex on the PATH")}
	case e.err != nil:
		return []Check{fail("client", "see to that, then look again", "%s: %v", cmp.Or(e.version, e.program), e.err)}
	}
	return []Check{ok("client", "%s is %s, and says which hooks it has", e.program, cmp.Or(e.version, "of an unknown release"))}
}

// install is the command that wires Codex's hooks, in a file that has some.
func (e *codexExamination) install(path string) string {
	words := []string{"heartbeat", "install", "--agent", "codex", "--inbox", cmp.Or(e.inbox, "PATH")}
	if path != "" {
		words = append(words, "--settings", path)
	}
	return quote(words...)
}

// checkHooks looks at the hooks that Codex has for the inbox.
func (e *codexExamination) checkHooks() []Check {
	if e.program == "" || e.err != nil {
		return nil
	}
	mine := slices.DeleteFunc(slices.Clone(e.wires), func(w *wire) bool { return e.relate(w) == other })
	stops := slices.DeleteFunc(slices.Clone(mine), func(w *wire) bool { return w.Event != settings.Stop })
	switch {
	case len(stops) == 0 && !e.any:
		return []Check{e.notWired("Codex has no hooks for %s, or they are disabled ([features] hooks = false in a config.toml), or the folder is not trusted")}
	case len(stops) == 0:
		return []Check{e.notWired("none of the hooks that Codex has for %s runs heartbeat-stop at Stop")}
	}
	all := []Check{ok("wired", "Stop -> %s (%s): it hands an entry over when a turn ends", stops[0].Command, e.show(stops[0].source.path))}
	if len(stops) > 1 {
		all[0] = warn("wired", "take out all but one", "%d hooks of Stop serve %s, and all run at every stop", len(stops), e.show(cmp.Or(e.inbox, stops[0].inbox)))
	}
	all = append(all, e.trust(mine)...)
	for _, w := range stops {
		all = append(all, e.stop(w)...)
	}
	return append(all, e.events(mine)...)
}

func (e *codexExamination) notWired(format string) Check {
	if c, known := e.wiredByLauncher(); known && e.inbox != "" {
		return c
	}
	return fail("wired", e.install(""), format+"; sessions of heartbeat launch need none", e.Project)
}

// trust is about what keeps Codex from running the hooks.
func (e *codexExamination) trust(mine []*wire) []Check {
	of := func(is func(clients.CodexHook) bool) (names string) {
		var all []string
		for _, w := range mine {
			if is(w.codex) {
				all = append(all, w.Event)
			}
		}
		slices.Sort(all)
		return strings.Join(slices.Compact(all), ", ")
	}
	var all []Check
	if names := of(func(h clients.CodexHook) bool { return !h.Enabled }); names != "" {
		all = append(all, fail("trust", "start codex in the project, and enable them in /hooks", "hooks are switched off: %s", names))
	}
	if names := of(func(h clients.CodexHook) bool { return h.Enabled && !h.Trusted() }); names != "" {
		all = append(all, fail("trust", "start codex in the project, and trust them in /hooks",
			"nobody has trusted hooks, or they were changed since: %s: Codex does not run them, and under exec says nothing of it", names))
	}
	if len(all) == 0 {
		all = append(all, ok("trust", "Codex runs the hooks without asking"))
	}
	return all
}

// stop is about the line of a hook of Stop.
func (e *codexExamination) stop(w *wire) (all []Check) {
	path := w.source.path
	switch {
	case !w.Exact:
		return []Check{warn("flags", e.install(path), "what a shell makes of this cannot be told: %s (%s)", w.Command, e.show(path))}
	case w.err != nil:
		return []Check{fail("flags", "correct it in "+path, "the hook does not take its arguments, and then approves every stop: %v", w.err)}
	}
	if err := runnable(w.Binary); err != nil {
		all = append(all, fail("binary", e.install(path), "the hook cannot be started: %v", err))
	} else {
		all = append(all, ok("binary", "%s can be started", w.Binary))
	}
	if w.hook.Rewake {
		all = append(all, fail("flags", e.install(path), "Codex runs no hooks in the background, so --rewake hands nothing over"))
	}
	if w.hook.Persist && w.Timeout <= w.hook.Idle {
		all = append(all, fail("timeout", e.install(path), "the hook of Stop has %s and waits %s for an entry: Codex ends it first, and the session stops", w.Timeout, w.hook.Idle))
	}
	return all
}

func (e *codexExamination) events(mine []*wire) []Check {
	var missing []string
	for _, name := range codexEvents {
		if !slices.ContainsFunc(mine, func(w *wire) bool { return w.Event == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return []Check{warn("events", e.install(mine[0].source.path), "%s are not wired: a session's start, its end and a person's prompts are not known", strings.Join(missing, ", "))}
	}
	return []Check{ok("events", "SessionStart, SessionEnd and UserPromptSubmit are wired as well")}
}
