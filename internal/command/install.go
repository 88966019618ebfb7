package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/bridges"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hook"
)

// installFlags are those of install; uninstall has some of them.
type installFlags struct {
	wired    hook.Flags
	scope    string
	settings string
	print    bool
	json     bool
	follow   bool
	noMeter  bool
	mcp      bool
	agent    string
}

// installed is what install and uninstall print with --json.
type installed struct {
	Settings string   `json:"settings"`
	Changed  bool     `json:"changed"`
	Command  string   `json:"command"`
	Args     []string `json:"args"`
	Timeout  int      `json:"timeout,omitempty"`
	Rewake   bool     `json:"rewake,omitempty"`
	Meter    string   `json:"meter,omitempty"`
	Tools    string   `json:"tools,omitempty"` // the .mcp.json or config.toml with the tools of an agent, or that they were taken out of

	wantsTools bool
}

func (o *installFlags) add(f *pflag.FlagSet) {
	o.scope = string(settings.Project)
	scopes := []string{string(settings.Project), string(settings.Local), string(settings.User)}
	f.Var(cli.Choice(&o.scope, scopes...), "scope", "whose settings: the project's (in this directory), yours for this project, or yours for all projects")
	o.addAgent(f)
	f.StringVar(&o.settings, "settings", "", "the settings `file` itself, in place of --scope")
	f.BoolVar(&o.follow, "follow", false, "where the settings file is a symbolic link, edit what it leads to")
	f.BoolVar(&o.print, "print", false, "show the file as it would be, and write nothing")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
}

func installVerb() cli.Verb {
	return cli.Verb{
		Name:  "install",
		Short: "wire the hook into a Claude Code settings file",
		Long: `Wire heartbeat-stop into a Claude Code settings file as the hook of Stop,
StopFailure, SessionStart, SessionEnd, UserPromptSubmit, Notification and
PostToolBatch, with the flags given here. It is the heartbeat-stop beside this
command, or else the one of PATH. Whatever else is in the file stays byte for byte.
Installing again changes nothing, or only what differs. The inbox's folder is made
where only that is missing.

The client says what a session has cost to its status line only: heartbeat-meter
is wired there as well, before the status line that you have, which goes on being
shown, also where it is in a file that this one has precedence over. --no-meter
leaves it out; then entries have tokens and no dollars.

With --mcp the project's .mcp.json starts heartbeat-mcp, whose tools have an agent say
itself what becomes of its entry, and the settings allow them. Installing without it
takes them out again.

With --agent codex the file is Codex's hooks.json, in the project's .codex, or in
~/.codex with --scope user. The config.toml beside it gets the tools with --mcp, and
switches hooks on where they are switched off; uninstall switches them back.

Without --rewake the hook blocks the stop: it hands over the next entry whenever
a turn ends, also under -p. Its timeout is above the idle interval, and the cap
on consecutive blocks is lifted (env.CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0: without
that the ninth entry in a row would be swallowed). With --rewake the turn ends
and the session is idle, free for a person, while the hook of Stop, StopFailure
and SessionStart waits in the background (asyncRewake) for up to a year, and
wakes it with the next entry; this takes an interactive session. Installing one
over the other changes all that is needed.`,
		Example: `heartbeat install --inbox work/inbox.jsonl
heartbeat install --inbox work/inbox.jsonl --scope user --mode persist --idle-interval 5m --print
heartbeat install --inbox work/inbox.jsonl --rewake`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			o := &installFlags{}
			f := cli.NewFlags("install")
			hook := o.wired.Set()
			for _, name := range []string{"help", "version", "no-input"} {
				hook.Lookup(name).Hidden = true
			}
			hook.VisitAll(func(flag *pflag.Flag) {
				if !flag.Hidden {
					f.AddFlag(flag)
				}
			})
			o.add(f)
			f.BoolVar(&o.noMeter, "no-meter", false, "wire no status line that counts what a session costs (heartbeat-meter)")
			f.BoolVar(&o.mcp, "mcp", false, "give sessions the tools of an agent (heartbeat-mcp), in the project's .mcp.json or Codex's config.toml, and allow them")
			return f, func(args []string, s cli.Streams) error {
				return o.run(f, args, s, "install", settings.Install, settings.InstallFile)
			}
		},
	}
}

func uninstallVerb() cli.Verb {
	return cli.Verb{
		Name:  "uninstall",
		Short: "take the hook out of a settings file again",
		Long: `Take out of a Claude Code settings file what install wrote for this inbox. A
file that nothing else was changed in is as it was before.`,
		Example: `heartbeat uninstall --inbox work/inbox.jsonl`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			o := &installFlags{}
			o.wired.Set()
			f := cli.NewFlags("uninstall")
			cli.AddInbox(f, &o.wired.Inbox)
			o.add(f)
			return f, func(args []string, s cli.Streams) error {
				return o.run(f, args, s, "uninstall", settings.Uninstall, settings.UninstallFile)
			}
		},
	}
}

func (o *installFlags) run(f *pflag.FlagSet, args []string, s cli.Streams, verb string,
	edit func([]byte, settings.Wiring) ([]byte, error), editFile func(string, settings.Wiring, settings.Links) (bool, error),
) error {
	if err := cli.NoArgs(args); err != nil {
		return err
	}
	if err := o.checkAgent(f); err != nil {
		return err
	}
	w, err := o.wiring(f, verb)
	if err != nil {
		return err
	}
	path, err := o.path()
	if err != nil {
		return cli.Usage(err)
	}
	if verb == "install" && !w.Line {
		w.Meter = o.meter(path, s)
	}
	other, err := o.hooks().beside(o, path, verb, s)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	w.Allowed = other.allowed()
	if o.print {
		other.announce(s)
		return preview(path, w, edit, s)
	}
	if verb == "install" {
		if err := lasts(w.Command); err != nil {
			return fmt.Errorf("install: %w", err)
		}
	}
	changed, err := other.around(hooksFile{path, w, settings.Links(o.follow), edit, editFile}, s)
	if err == nil && verb == "install" {
		err = o.makeFolder(s)
		o.bindRuns(s)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	report := installed{
		Settings: path, Changed: changed, Command: w.Command, Args: w.Args, Timeout: w.Timeout, Rewake: o.wired.Rewake,
		Meter: metered(path, w, s), Tools: other.concerned(), wantsTools: o.mcp,
	}
	if then := o.hooks().then; verb == "install" && changed && then != "" {
		s.Note("%s", then)
	}
	return (&cli.InboxFlags{JSON: o.json}).Print(s, report, report.sentence(verb))
}

// lasts returns an error if the hook's program will be gone before a session runs it.
func lasts(program string) error {
	if strings.Contains(program, string(filepath.Separator)+"go-build") {
		return fmt.Errorf("%s is a `go run` build and will be gone: build the command first (see the README), and run that", program)
	}
	return nil
}

// makeFolder comes last: where root makes the folder of another user, it becomes that
// user, who may not be able to write the settings.
func (o *installFlags) makeFolder(s cli.Streams) error {
	if err := makeFolder(o.wired.Inbox, s); err != nil {
		return fmt.Errorf("the hook is wired, but %w", err)
	}
	if dir, err := filepath.Abs(filepath.Dir(o.wired.Inbox)); err == nil {
		if there, err := disk.Exists(dir); err == nil && !there {
			s.Note("the inbox's folder %s is missing, and so is the one above it: make it before a session starts", dir)
		}
	}
	return nil
}

// bindRuns binds the runs to their code as it is now. What cannot be opened is said by a step.
func (o *installFlags) bindRuns(s cli.Streams) {
	if box, err := inbox.Open(o.wired.Inbox, inbox.Options{}); err == nil {
		_, _ = bridges.All(&o.wired.Runs, box, s.Note)
	}
}

func (i installed) sentence(verb string) string {
	switch {
	case !i.Changed:
		return i.Settings + " is as it should be already: nothing was changed"
	case verb == "uninstall" && i.Tools != "":
		return "took the hook out of " + i.Settings + ", and the tools out of " + i.Tools
	case verb == "uninstall":
		return "took the hook out of " + i.Settings
	case i.Tools != "" && i.wantsTools:
		return fmt.Sprintf("wired %s into %s, and the tools of an agent into %s: a new session picks them up", i.Command, i.Settings, i.Tools)
	}
	return fmt.Sprintf("wired %s into %s: a new session picks it up, and so does one that trusts the folder and reloads its settings", i.Command, i.Settings)
}

func preview(path string, w settings.Wiring, edit func([]byte, settings.Wiring) ([]byte, error), s cli.Streams) error {
	before, err := disk.ReadFile(path, settings.MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("settings: %w", err)
	}
	after, err := edit(before, w)
	if err != nil {
		return fmt.Errorf("settings %s: %w", path, err)
	}
	_, err = s.Out.Write(after)
	return err
}

// wiring turns the flags into what the settings file says. Only flags that were
// given are written, so that defaults can get better.
func (o *installFlags) wiring(f *pflag.FlagSet, verb string) (settings.Wiring, error) {
	if err := o.wired.Check(f, nil); err != nil {
		return settings.Wiring{}, cli.Usage(err)
	}
	program, err := cli.Beside(hook.CommandName)
	if err != nil && verb == "uninstall" {
		// The hook may be gone already. Only its name tells which entries are its own.
		program, err = filepath.Abs(hook.CommandName)
	}
	if err != nil {
		return settings.Wiring{}, err
	}
	for _, path := range []*string{&o.wired.Inbox, &o.wired.SignalFile} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return settings.Wiring{}, err
		}
	}
	if err := o.wired.Runs.Absolute(); err != nil {
		return settings.Wiring{}, err
	}
	if o.wired.Rewake {
		return settings.Waking(program, o.args(f)), nil
	}
	return o.hooks().wiring(program, o.args(f), time.Duration(o.wired.Idle)), nil
}

func (o *installFlags) args(f *pflag.FlagSet) []string {
	args := []string{"--inbox", o.wired.Inbox}
	own := map[string]bool{"inbox": true, "scope": true, "settings": true, "follow": true, "print": true, "json": true, "help": true, "no-meter": true, "mcp": true, "agent": true}
	f.Visit(func(flag *pflag.Flag) {
		if !own[flag.Name] {
			args = append(args, spelled(flag)...)
		}
	})
	return args
}

// spelled is a flag as it would be given.
func spelled(f *pflag.Flag) (args []string) {
	several, repeated := f.Value.(pflag.SliceValue)
	switch {
	case repeated:
		for _, value := range several.GetSlice() {
			args = append(args, "--"+f.Name, value)
		}
	case f.Value.Type() != "bool":
		return []string{"--" + f.Name, f.Value.String()}
	case f.Value.String() == "true":
		return []string{"--" + f.Name}
	}
	return args
}

func (o *installFlags) path() (string, error) {
	if o.settings != "" {
		return filepath.Abs(o.settings)
	}
	project, err := os.Getwd()
	if err != nil {
		return "", err
	}
	home, err := os.UserHomeDir()
	if err != nil && o.scope == string(settings.User) {
		return "", err
	}
	return o.hooks().path(settings.Scope(o.scope), project, home)
}
