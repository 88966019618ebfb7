package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/codex/configfile"
	"heartbeat/internal/hook"
)

const (
	hooksName  = "hooks.json"
	configName = "config.toml"
)

// wiringPlan is what install or uninstall edits: the file with the hooks, and perhaps one beside it, both checked first.
type wiringPlan struct {
	install bool
	wiring  settings.Wiring
	hooks   settings.Edit
	beside  *settings.Edit // of the file with an agent's tools, nil if that is left alone
	would   string         // what --print notes about it
}

func (o *installFlags) plan(s cli.Streams) (*wiringPlan, error) {
	w, err := o.wiring()
	if err != nil {
		return nil, err
	}
	path, err := o.path()
	if err != nil {
		return nil, cli.Usage(err)
	}
	p := &wiringPlan{install: o.verb == "install", wiring: w}
	if err := o.planTools(p, path, s); err != nil {
		return nil, fmt.Errorf("%s: %w", o.verb, err)
	}
	p.hooks = settings.UninstallFile(path, p.wiring, settings.Links(o.follow))
	if p.install {
		p.hooks = settings.InstallFile(path, p.wiring, settings.Links(o.follow))
	}
	return p, nil
}

// write edits both files, the one beside first, but last on uninstall: while it has its part, what the hooks' file has
// for it belongs to an install, even after a kill. If the hooks cannot be edited, both files stay as they are.
func (p *wiringPlan) write() (changed bool, err error) {
	if _, _, err := p.hooks.Preview(); err != nil {
		return false, err
	}
	edits := []settings.Edit{p.hooks}
	if p.beside != nil {
		edits = append(edits, *p.beside)
	}
	if p.install {
		slices.Reverse(edits)
	}
	for _, e := range edits {
		did, err := e.Write()
		if changed = changed || did; err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// wouldChange reports whether an edit would change its file. It follows links: only the edit itself may refuse them.
func wouldChange(edit settings.Edit) (bool, error) {
	edit.Links = settings.FollowLinks
	file, after, err := edit.Preview()
	return err == nil && !bytes.Equal(file, after), err
}

// toolServer returns the server with an agent's tools. If they are not wanted, only its name has to be right, which
// tells an existing server from a person's own.
func (o *installFlags) toolServer(wanted bool) (settings.Server, error) {
	program := commandName
	if wanted {
		var err error
		if program, err = cli.Beside(commandName); err == nil {
			err = checkLasting(program)
		}
		if err != nil {
			return settings.Server{}, fmt.Errorf("--mcp: %w", err)
		}
	}
	return settings.AgentServer(program, o.wired.Inbox), nil
}

// planTools plans an agent's tools. Their server is in a file beside that with the hooks: the .mcp.json of a project
// with Claude Code, whose settings also have to allow it, or Codex's config.toml.
func (o *installFlags) planTools(p *wiringPlan, path string, s cli.Streams) error {
	wanted, links := p.install && o.mcp, settings.Links(o.follow)
	project, fits := projectOf(path)
	fits = fits && o.scope != string(settings.User)
	beside, place, kind := filepath.Join(project, settings.ServersName), settings.ServersName+" of a project", "not the settings file of one"
	if o.agent == codexAgent {
		fits, beside = filepath.Base(path) == hooksName, filepath.Join(filepath.Dir(path), configName)
		place, kind = configName+" beside a "+hooksName, "none"
	}
	if !fits && wanted {
		return cli.Usage(fmt.Errorf("--mcp writes the %s, and %s is %s: leave --mcp out, and see heartbeat mcp print-config", place, path, kind))
	}
	if !fits {
		return nil
	}
	server, err := o.toolServer(wanted)
	if err != nil {
		return err
	}
	edit := server.File(beside, links, wanted)
	if o.agent == codexAgent {
		edit = configfile.File(beside, links, server, wanted)
	}
	if wanted {
		p.would = fmt.Sprintf("%s would start %s as the server %s", beside, server.Command, server.Name)
		if _, _, err := edit.Preview(); err != nil {
			return fmt.Errorf("--mcp: %w", err)
		}
	} else {
		p.would = fmt.Sprintf("%s would no longer start the server %s", beside, server.Name)
		has, err := wouldChange(edit)
		if text, _ := settings.Read(beside, links); err != nil && bytes.Contains(text, []byte("heartbeat")) {
			s.Note("what install may have written there is left as it is: %v", err)
		}
		if text, _ := settings.Read(path, links); !has || p.install && !p.wiring.Line && !settings.Allows(text, server.Name) {
			return nil // nothing is there, or it was installed with other settings of the project
		}
	}
	p.beside = &edit
	if !p.wiring.Line {
		p.wiring.Server, p.wiring.Allowed = server.Name, wanted
	}
	return nil
}

// noteCodexOff notes what keeps Codex from running the hooks at path: the config.toml beside it, or the person's.
func noteCodexOff(path string, s cli.Streams) {
	person := installFlags{agent: codexAgent, scope: string(settings.User)}
	persons, err := person.path()
	if err != nil {
		return
	}
	for _, hooks := range []string{path, persons} {
		file := filepath.Join(filepath.Dir(hooks), configName)
		text, err := settings.Read(file, settings.FollowLinks)
		var on, set bool
		if err == nil {
			on, set, err = configfile.HooksIn(text)
		}
		switch {
		case err != nil:
			s.Note("Codex may have hooks switched off: %s: %v", file, err)
			return
		case set && !on:
			s.Note("no session will ask for entries: hooks are switched off by [features] in %s: switch them on there", file)
		}
		if set {
			return
		}
	}
}

// wiring makes the hooks of a settings file from the given flags alone, so that a later release can improve defaults.
func (o *installFlags) wiring() (settings.Wiring, error) {
	if err := o.wired.Check(o.hook, nil); errors.Is(err, cli.ErrNoInbox) && o.verb == "uninstall" {
		return settings.Wiring{}, cli.Usage(fmt.Errorf("%w; heartbeat doctor says which one is wired", err))
	} else if err != nil {
		return settings.Wiring{}, cli.Usage(cli.OrInit(err))
	}
	program, err := cli.Beside(hook.CommandName)
	if err != nil && o.verb == "uninstall" {
		// The hook may be gone already. Only its name tells which settings are heartbeat's.
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
	args := []string{"--inbox", o.wired.Inbox}
	o.hook.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && flag.Name != "inbox" && !flag.Hidden {
			args = append(args, cli.Spelled(flag)...)
		}
	})
	wait := max(time.Duration(o.wired.Idle), o.wired.Orphan.Checks.Longest())
	if o.wired.Rewake {
		return settings.Waking(program, args), nil
	}
	if o.agent == codexAgent {
		return settings.Lines(program, args, wait), nil
	}
	return settings.Blocking(program, args, wait), nil
}

func (o *installFlags) path() (string, error) {
	if o.settings != "" {
		return filepath.Abs(o.settings)
	}
	project, err := os.Getwd()
	if err != nil {
		return "", err
	}
	home, _ := os.UserHomeDir() // "" if there is none
	if o.agent == codexAgent {
		return settings.LinesPath(settings.Scope(o.scope), project, home, os.Getenv("CODEX_HOME"))
	}
	return settings.Path(settings.Scope(o.scope), project, home, os.Getenv("CLAUDE_CONFIG_DIR"))
}

// projectOf returns the project to which a settings file at path belongs, if any.
func projectOf(path string) (dir string, ok bool) {
	above := filepath.Dir(path)
	return filepath.Dir(above), filepath.Base(above) == ".claude" && slices.Contains([]string{"settings.json", "settings.local.json"}, filepath.Base(path))
}

// noteOff notes what keeps the hooks in the file at path from running, and reports whether anything does.
func noteOff(path string, s cli.Streams) (off bool) {
	dir, ok := projectOf(path)
	if !ok {
		dir, _ = os.Getwd()
	}
	is := func(f settings.File) bool { return f.Path == path }
	files := settings.FilesOf(os.Environ(), dir)
	if !slices.ContainsFunc(files, is) { // a session gets it with --settings
		files = settings.FilesOf(os.Environ(), dir, path)
	}
	file := files[slices.IndexFunc(files, is)]
	if _, _, err := file.Load(""); err != nil {
		s.Note("no session will ask for entries until this is mended: %s: %v", path, err)
		return true
	}
	switched := settings.HooksOff(files, settings.File.Loaded, file.Managed)
	if switched != nil {
		s.Note("no session will ask for entries: %v", switched)
	}
	return switched != nil
}
