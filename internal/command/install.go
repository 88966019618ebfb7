package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hook"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
)

// installFlags are the flags of install; uninstall has some of them.
type installFlags struct {
	verb     string // install or uninstall
	wired    hook.Flags
	hook     *pflag.FlagSet // sets wired
	scope    string
	settings string
	print    bool
	json     bool
	follow   bool
	mcp      bool
	agent    string
	changed  bool // a file was
}

// installed is what install and uninstall print with --json.
type installed struct {
	Settings string   `json:"settings"`
	Changed  bool     `json:"changed"`
	Command  string   `json:"command"`
	Args     []string `json:"args"`
	Timeout  int      `json:"timeout,omitempty"` // of hooks that the client waits for
	Rewake   bool     `json:"rewake,omitempty"`
	Tools    string   `json:"tools,omitempty"` // the file that wires an agent's tools
	off      bool     // the client will not run the hook, and a note says so
}

// The clients and scopes that install knows. The first is the default.
var (
	agents = []string{"claude", codexAgent}
	scopes = []string{string(settings.Project), string(settings.Local), string(settings.User)}
)

func (o *installFlags) add(f *pflag.FlagSet) {
	o.agent, o.scope = agents[0], scopes[0]
	f.Var(cli.Choice(&o.scope, scopes...), "scope", "whose settings: the project's (in this directory), yours for this project, or yours for all projects")
	f.Var(cli.Choice(&o.agent, agents...), "agent", "the client whose hooks these are")
	f.StringVar(&o.settings, "settings", "", "the settings `file` itself, in place of --scope")
	f.BoolVar(&o.follow, "follow-links", false, "where the settings file is a symbolic link, edit what it leads to")
	cli.AddAlias(f, "follow-links", "follow")
	f.BoolVar(&o.print, "print", false, "show the file as it would be, and write nothing")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
}

var installVerb = cli.Verb{
	Name:  "install",
	Short: "wire the hook into a Claude Code settings file",
	Long: `Wire heartbeat-stop into a Claude Code settings file as the hook of Stop,
StopFailure, SessionStart, SessionEnd, UserPromptSubmit, Notification and
PostToolBatch, with the flags given here. It is the heartbeat-stop beside this
command, or else the one of PATH. Whatever else is in the file stays byte for byte,
and the file as it was is kept beside it (FILE.before-heartbeat) for uninstall.
Installing again changes nothing, or only what differs. The inbox's folder is made
where only that is missing.

With --mcp the project's .mcp.json starts heartbeat mcp, whose tools let an agent say
itself what becomes of its entry, and the settings allow them. Installing without it
takes them out again.

With --agent codex the file is Codex's hooks.json, in the project's .codex, or in
~/.codex with --scope user. The config.toml beside it gets the tools with --mcp.

Without --rewake the hook blocks the stop: it hands over the next entry whenever
a turn ends, also under -p. Its timeout is above the idle interval, and the cap
on consecutive blocks is lifted (env.CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0: without
that the ninth entry in a row would be swallowed). With --rewake the turn ends
and the session is idle, free for a person, while the hook of Stop, StopFailure
and SessionStart waits in the background (asyncRewake) for up to a year, and
wakes it with the next entry; this takes an interactive session. Installing one
over the other changes all that is needed.`,
	Example: `heartbeat install
heartbeat install --scope user --mode persist --idle-interval 5m --print
heartbeat install --rewake`,
	Build: func(f *pflag.FlagSet) cli.Action {
		o := &installFlags{verb: "install"}
		o.hook = o.wired.Set()
		for _, name := range []string{"help", "version", "no-input"} {
			o.hook.Lookup(name).Hidden = true
		}
		o.hook.VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden || flag.Usage == "" { // hidden ones with usage name their successor
				f.AddFlag(flag)
			}
		})
		o.add(f)
		f.Bool("no-meter", false, "") // of earlier releases
		f.Lookup("no-meter").Hidden = true
		f.BoolVar(&o.mcp, "mcp", false, "give sessions the tools of an agent (heartbeat mcp), in the project's .mcp.json or Codex's config.toml, and allow them")
		return func(_ []string, s cli.Streams) error { return o.run(f, s) }
	},
}

var uninstallVerb = cli.Verb{
	Name:  "uninstall",
	Short: "take the hook out of a settings file again",
	Long: `Take out of the settings files what install wrote for this inbox: those of the
project, yours for it, yours for all projects, and Codex's. --scope, --agent and
--settings narrow that down. A file in which nothing else was changed is as it was
before install: that was kept beside it, as FILE.before-heartbeat. Where somebody
changed it since, heartbeat's own part goes, and the rest stays. An open session that
waits at its prompt is woken no more, unless a launcher or another file wires it. One
that has not read its settings again may still ask for entries after a turn.`,
	Example: `heartbeat uninstall`,
	Build: func(f *pflag.FlagSet) cli.Action {
		o := &installFlags{verb: "uninstall"}
		o.hook = o.wired.Set()
		cli.AddInbox(f, &o.wired.Inbox)
		o.add(f)
		return func(_ []string, s cli.Streams) error {
			err := o.run(f, s)
			o.agent = agents[0] // no other waits in the background
			if w, unwired := o.wiring(); o.changed && unwired == nil {
				endWait(o.wired.Inbox, w, s)
			}
			return err
		}
	},
}

const codexAgent = "codex"

// notForCodex has the flags that have no meaning for Codex, and why.
var notForCodex = map[string]string{
	"rewake":               "Codex runs no hooks in the background",
	"max-cost-per-entry":   "Codex cannot be stopped between two requests",
	"max-tokens-per-entry": "Codex cannot be stopped between two requests",
}

func (o *installFlags) run(f *pflag.FlagSet, s cli.Streams) error {
	for _, name := range slices.Sorted(maps.Keys(notForCodex)) {
		if o.agent == codexAgent && f.Changed(name) {
			return cli.Usage(fmt.Errorf("--%s means nothing with --agent %s: %s", name, o.agent, notForCodex[name]))
		}
	}
	if o.wired.Inbox == "" {
		o.wired.Inbox = cli.FindInbox()
	}
	if o.verb == "uninstall" && o.settings == "" {
		return o.uninstallAll(f, s)
	}
	p, err := o.plan(s)
	if err != nil {
		return err
	}
	return o.apply(p, s)
}

func (o *installFlags) apply(p *wiringPlan, s cli.Streams) error {
	w, path := p.wiring, p.hooks.Path
	if o.print {
		if p.beside != nil {
			s.Note("%s", p.would)
		}
		_, after, err := p.hooks.Preview()
		if err == nil {
			_, err = s.Out.Write(after)
		}
		return err
	}
	if err := checkLasting(w.Command); err != nil && p.install {
		return fmt.Errorf("%s: %w", o.verb, err)
	}
	changed, err := p.write()
	o.changed = o.changed || changed
	if err == nil && p.install {
		err = o.makeFolder(s)
		// Runs are bound to their code as it is now. The next step reports a run that cannot be opened.
		if box, err := inbox.Open(o.wired.Inbox, inbox.Options{}); err == nil {
			_, _ = orchestrate.OpenAll(context.Background(), &o.wired.Runs, box, s.Note)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.verb, err)
	}
	report := installed{Settings: path, Changed: changed, Command: w.Command, Args: w.Args, Timeout: w.Timeout, Rewake: o.wired.Rewake}
	if p.beside != nil {
		report.Tools = p.beside.Path
	}
	switch {
	case p.install && !w.Line:
		report.off = noteOff(path, s)
	case p.install:
		noteCodexOff(path, s)
		if changed {
			s.Note("Codex runs no hook that nobody has trusted, and under exec says nothing of it: start codex in the project once, and trust the folder and the hooks")
		}
	}
	return (&cli.InboxFlags{JSON: o.json}).Print(s, report, o.sentence(report))
}

// uninstallAll uninstalls from every file that --agent and --scope allow and that has anything of the inbox. It checks
// all files before it edits any, because one file may tell what belongs to the inbox in another.
func (o *installFlags) uninstallAll(f *pflag.FlagSet, s cli.Streams) error {
	path, err := o.path() // where install goes without flags
	if err != nil {
		return cli.Usage(err)
	}
	plans := map[string]*wiringPlan{}
	var wired, rest []*wiringPlan
	for _, agent := range agents {
		for _, scope := range scopes {
			one := *o
			one.agent, one.scope = agent, scope
			at, err := one.path()
			if f.Changed("agent") && agent != o.agent || f.Changed("scope") && scope != o.scope || err != nil || plans[at] != nil {
				continue
			}
			p, err := one.plan(s)
			if err != nil {
				return err
			}
			plans[at] = p
			switch changes, err := wouldChange(p.hooks); {
			case changes || err != nil && at == path:
				wired = append(wired, p)
			case err == nil:
				rest = append(rest, p)
			default:
				if text, _ := settings.Read(at, settings.FollowLinks); bytes.Contains(text, []byte("heartbeat")) {
					s.Note("what may be there is left as it is: %v", err)
				}
			}
		}
	}
	done := false
	for i, p := range append(wired, rest...) {
		if p.beside != nil { // both settings of a project share one .mcp.json
			if has, err := wouldChange(*p.beside); err == nil && !has {
				p.beside = nil
			}
		}
		if i >= len(wired) && p.beside == nil { // not even a kill between the two files left anything
			continue
		}
		done = true
		if err := o.apply(p, s); err != nil {
			return err
		}
	}
	if done {
		return nil
	}
	noteAbove(plans[path].wiring, s)
	return o.apply(plans[path], s)
}

// endWait makes the hook leave that waits in the background, unless a launcher wired it, or a file still wires it for
// its session. Once the client has read the settings again, no hook would report the end of a turn that this one began.
func endWait(path string, wiring settings.Wiring, s cli.Streams) {
	box, err := inbox.Open(path, inbox.Options{})
	if err != nil || lockHolder(box) != 0 {
		return
	}
	view, err := box.View()
	if err != nil {
		return // nothing can be delivered either
	}
	wires := func(f settings.File) bool {
		wired, err := wouldChange(settings.UninstallFile(f.Path, wiring, settings.FollowLinks))
		return wired && err == nil
	}
	w, err := view.Waiter()
	if err = errors.Join(err, view.Close()); err != nil || w == nil ||
		slices.ContainsFunc(settings.FilesOf(os.Environ(), machine.WorkingDir(w.PID)), wires) {
		return
	}
	if err := change(box, s, func(tx *inbox.Tx) error { tx.StopWaiting(); return nil }); err != nil {
		s.Note("an open session may still get entries until it is ended: %v", err)
	}
}

// noteAbove notes where a folder above wires the inbox, for a person who runs uninstall in the wrong folder.
func noteAbove(w settings.Wiring, s cli.Streams) {
	here, _ := os.Getwd() // on failure there is none above
	for dir := filepath.Dir(here); here != dir; here, dir = dir, filepath.Dir(dir) {
		for _, name := range []string{".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json"} {
			file := filepath.Join(dir, name)
			text, _ := settings.Read(file, settings.FollowLinks)
			if wired, _ := w.In(text); wired {
				s.Note("nothing in this folder wires the inbox, but %s does: cd %s && heartbeat uninstall --inbox %s", file, words.Shell(dir), words.Shell(w.Inbox()))
				return
			}
		}
	}
}

// checkLasting returns an error if the hook's program will be gone before a session runs it.
func checkLasting(program string) error {
	if strings.Contains(program, string(filepath.Separator)+"go-build") {
		return fmt.Errorf("%s is a `go run` build and will be gone: build the command first (see the README), and run that", program)
	}
	return nil
}

// makeFolder comes last: root becomes the user whose folder it is, who may not be able to write the settings.
func (o *installFlags) makeFolder(s cli.Streams) error {
	if err := makeFolder(o.wired.Inbox, s); err != nil {
		return fmt.Errorf("the hook is wired, but %w", err)
	}
	dir := filepath.Dir(o.wired.Inbox)
	if there, err := disk.Exists(dir); err == nil && !there {
		s.Note("the inbox's folder %s is missing, and so is the one above it: make it before a session starts", dir)
	}
	return nil
}

func (o *installFlags) sentence(i installed) string {
	switch {
	case !i.Changed:
		return i.Settings + " is as it should be already: nothing was changed"
	case o.verb == "uninstall" && i.Tools != "":
		return "took the hook out of " + i.Settings + ", and the tools out of " + i.Tools
	case o.verb == "uninstall":
		return "took the hook out of " + i.Settings
	case i.off:
		return fmt.Sprintf("wired %s into %s", i.Command, i.Settings)
	case i.Tools != "" && o.mcp:
		return fmt.Sprintf("wired %s into %s, and the tools of an agent into %s: a new session picks them up", i.Command, i.Settings, i.Tools)
	}
	return fmt.Sprintf("wired %s into %s: a new session picks it up, and so does one that trusts the folder and reloads its settings", i.Command, i.Settings)
}
