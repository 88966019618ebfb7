package doctor

import (
	"cmp"
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/codex/server"
)

// codexEvents are what install wires, as Codex spells them; the first hands entries over.
var codexEvents = map[string]string{
	"stop": settings.Stop, "sessionStart": settings.SessionStart, "sessionEnd": settings.SessionEnd, "userPromptSubmit": settings.UserPromptSubmit,
}

// codexWire is a hook of heartbeat's that Codex has.
type codexWire struct {
	server.Hook
	binary string
	flags  Hook
	err    error // of its flags
	exact  bool  // the line is a command and its arguments, and nothing that is up to a shell
	inbox  string
}

// codexExamination has what the checks of Codex need, beside what all checks do.
type codexExamination struct {
	*examination
	program string // "" when there is none
	version string
	err     error // why it could not be asked
	wires   []codexWire
	any     bool // it knows hooks of some kind
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
		if w, ours := e.wire(h); ours {
			e.wires = append(e.wires, w)
		}
	}
	if e.inbox == "" {
		e.inbox = e.onlyInbox()
	}
	return e
}

var mentionsHook = regexp.MustCompile(`\bheartbeat-stop\b`)

// wire reads a hook's line as the hook would.
func (e *codexExamination) wire(h server.Hook) (w codexWire, ours bool) {
	if codexEvents[h.Event] == "" || !mentionsHook.MatchString(h.Command) {
		return w, false
	}
	w = codexWire{Hook: h}
	var args []string
	w.binary, args, w.exact = settings.SplitLine(h.Command)
	if !w.exact {
		return w, true
	}
	w.flags, w.err = e.Parse(args, e.variable(cli.InboxVariable))
	switch w.inbox = w.flags.Inbox; {
	case w.err != nil || w.inbox == "":
	case !filepath.IsAbs(w.inbox):
		w.inbox = filepath.Join(e.Project, w.inbox)
	}
	return w, true
}

// onlyInbox is the inbox that is wired, "" if there is none, or several.
func (e *codexExamination) onlyInbox() (only string) {
	for _, w := range e.wires {
		if only != "" && w.inbox != only {
			return ""
		}
		only = cmp.Or(w.inbox, only)
	}
	return only
}

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
	mine := e.wires
	if e.inbox != "" {
		mine = slices.DeleteFunc(slices.Clone(e.wires), func(w codexWire) bool { return w.inbox != "" && !inbox.SameInbox(w.inbox, e.inbox) })
	}
	stop := slices.IndexFunc(mine, func(w codexWire) bool { return w.Event == "stop" })
	switch {
	case stop < 0 && !e.any:
		return []Check{e.notWired("Codex has no hooks for %s, or they are disabled ([features] hooks = false in a config.toml), or the folder is not trusted")}
	case stop < 0:
		return []Check{e.notWired("none of the hooks that Codex has for %s runs heartbeat-stop at Stop")}
	}
	all := []Check{e.wired(mine, mine[stop])}
	all = append(all, e.trust(mine)...)
	for _, w := range mine {
		all = append(all, e.one(w)...)
	}
	return append(all, e.events(mine)...)
}

func (e *codexExamination) notWired(format string) Check {
	if c, known := e.wiredByLauncher(); known && e.inbox != "" {
		return c
	}
	return fail("wired", e.install(""), format+"; sessions of heartbeat launch need none", e.Project)
}

func (e *codexExamination) wired(mine []codexWire, stop codexWire) Check {
	n := 0
	for _, w := range mine {
		if w.Event == "stop" {
			n++
		}
	}
	if n > 1 {
		return warn("wired", "take out all but one", "%d hooks of Stop serve %s, and all run at every stop", n, e.show(cmp.Or(e.inbox, stop.inbox)))
	}
	return ok("wired", "Stop -> %s (%s): it hands an entry over when a turn ends", stop.Command, e.show(stop.Path))
}

// trust is about what keeps Codex from running the hooks.
func (e *codexExamination) trust(mine []codexWire) []Check {
	of := func(is func(codexWire) bool) (names string) {
		var all []string
		for _, w := range mine {
			if is(w) {
				all = append(all, codexEvents[w.Event])
			}
		}
		slices.Sort(all)
		return strings.Join(slices.Compact(all), ", ")
	}
	var all []Check
	if names := of(func(w codexWire) bool { return !w.Enabled }); names != "" {
		all = append(all, fail("trust", "start codex in the project, and enable them in /hooks", "hooks are switched off: %s", names))
	}
	if names := of(func(w codexWire) bool { return w.Enabled && !w.Trusted() }); names != "" {
		all = append(all, fail("trust", "start codex in the project, and trust them in /hooks",
			"nobody has trusted hooks, or they were changed since: %s: Codex does not run them, and under exec says nothing of it", names))
	}
	if len(all) == 0 {
		all = append(all, ok("trust", "Codex runs the hooks without asking"))
	}
	return all
}

// one is about a hook's line.
func (e *codexExamination) one(w codexWire) []Check {
	switch {
	case w.Event != "stop":
		return nil
	case !w.exact:
		return []Check{warn("flags", e.install(w.Path), "what a shell makes of this cannot be told: %s (%s)", w.Command, e.show(w.Path))}
	case w.err != nil:
		return []Check{fail("flags", "correct it in "+w.Path, "the hook does not take its arguments, and then approves every stop: %v", w.err)}
	}
	var all []Check
	if err := runnable(w.binary); err != nil {
		all = append(all, fail("binary", e.install(w.Path), "the hook cannot be started: %v", err))
	} else {
		all = append(all, ok("binary", "%s can be started", w.binary))
	}
	limit := time.Duration(w.Timeout) * time.Second
	switch {
	case w.flags.Rewake:
		all = append(all, fail("flags", e.install(w.Path), "Codex runs no hooks in the background, so --rewake hands nothing over"))
	case w.flags.Dollars:
		all = append(all, warn("limits", "leave them out", "the limits in dollars of the hook in %s do not hold: Codex does not say what it costs", e.show(w.Path)))
	}
	if w.flags.Persist && limit <= w.flags.Idle {
		all = append(all, fail("timeout", e.install(w.Path), "the hook of Stop has %s and waits %s for an entry: Codex ends it first, and the session stops", limit, w.flags.Idle))
	}
	return all
}

func (e *codexExamination) events(mine []codexWire) []Check {
	var missing []string
	for event, name := range codexEvents {
		if !slices.ContainsFunc(mine, func(w codexWire) bool { return w.Event == event }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return []Check{warn("events", e.install(mine[0].Path), "%s are not wired: a session's start, its end and a person's prompts are not known", strings.Join(missing, ", "))}
	}
	return []Check{ok("events", "SessionStart, SessionEnd and UserPromptSubmit are wired as well")}
}
