package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/codex/configfile"
	"heartbeat/internal/mcp"
)

const (
	hooksName  = "hooks.json"
	configName = "config.toml"
)

// wiringPlan is what install or uninstall does: the file with the hooks is edited, and perhaps one beside it. All is looked
// at before anything is written.
type wiringPlan struct {
	install bool
	wiring  settings.Wiring
	hooks   settings.Edit
	beside  *settings.Edit // nil for none
	tools   string         // the file that has the tools of an agent, or had them; "" if nothing is done about them
	wanted  bool           // the tools are
	would   []string       // what --print says of the file beside
	did     string         // what is said of it when it is written
}

// plan finds out what there is to do about the settings file that the flags name.
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
	p.wanted = p.install && o.mcp
	if o.agent == codexAgent {
		err = o.planConfig(p, path, s)
	} else {
		err = o.planTools(p, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.verb, err)
	}
	p.hooks = settings.UninstallFile(path, p.wiring, settings.Links(o.follow))
	if p.install {
		p.hooks = settings.InstallFile(path, p.wiring, settings.Links(o.follow))
	}
	return p, nil
}

// write edits the file beside before the hooks, or after them where it is taken back: that its part is there says that what
// the hooks' file has for it is of an install, also if one of the two was killed between the files. Hooks that cannot be
// edited leave both alone.
func (p *wiringPlan) write() (changed bool, err error) {
	if _, _, err := p.hooks.Look(); err != nil {
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

// changesHooks reports whether the file with the hooks would be changed. A link that is not to be followed is an error only where that is so.
func (p *wiringPlan) changesHooks() (bool, error) {
	look := p.hooks
	look.Links = settings.FollowLinks
	file, after, err := look.Look()
	return err == nil && !bytes.Equal(file, after), err
}

// toolServer is the server with the tools of an agent. Where they are not wanted, only its name has to be known, by which
// those that are there are told from a person's own.
func (o *installFlags) toolServer(wanted bool) (settings.Server, error) {
	program, err := cli.Beside(commandName)
	if err != nil && !wanted {
		program, err = filepath.Abs(commandName)
	}
	if err == nil && wanted {
		err = lasts(program)
	}
	if err != nil {
		return settings.Server{}, fmt.Errorf("--mcp: %w", err)
	}
	return mcp.AgentServer(program, o.wired.Inbox)
}

// have says what becomes of the tools in a file.
func (p *wiringPlan) have(e settings.Edit, server settings.Server) {
	p.tools = e.Path
	if p.wanted {
		p.would = append(p.would, fmt.Sprintf("%s would start %s as the server %s", e.Path, server.Command, server.Name))
		return
	}
	p.would = append(p.would, fmt.Sprintf("%s would no longer start the server %s", e.Path, server.Name))
}

// planTools is about the tools of an agent in a project of Claude Code: the server in its .mcp.json, which the settings
// allow.
func (o *installFlags) planTools(p *wiringPlan, path string) error {
	project, isProjects := projectOf(path)
	if !isProjects || o.scope == string(settings.User) {
		if p.wanted {
			return cli.Usage(fmt.Errorf("--mcp writes the %s of a project, and %s is not the settings file of one: leave --mcp out, and see heartbeat mcp print-config", settings.ServersName, path))
		}
		return nil
	}
	server, err := o.toolServer(p.wanted)
	if err != nil {
		return err
	}
	servers, links := filepath.Join(project, settings.ServersName), settings.Links(o.follow)
	e := server.UninstallFile(servers, links)
	if p.wanted {
		e = server.InstallFile(servers, links)
		if _, _, err := e.Look(); err != nil {
			return fmt.Errorf("--mcp: %w", err)
		}
	} else if text, err := settings.Read(servers, links); err != nil || !server.In(text) {
		return nil // a file that cannot be read has nothing of ours
	} else if text, _ = settings.Read(path, links); p.install && !settings.Allows(text, server.Name) {
		return nil // they were installed with other settings of the project
	}
	p.have(e, server)
	p.beside, p.wiring.Allowed = &e, &settings.Allowed{Server: server.Name, Drop: !p.wanted}
	return nil
}

// planConfig is about the config.toml beside Codex's hooks.json: it can switch hooks off, and has the tools of an agent.
// What it allows stands in the server's own table.
func (o *installFlags) planConfig(p *wiringPlan, path string, s cli.Streams) error {
	if filepath.Base(path) != hooksName {
		if p.wanted {
			return cli.Usage(fmt.Errorf("--mcp writes the %s beside a %s, and %s is none: leave --mcp out, and see heartbeat mcp print-config", configName, hooksName, path))
		}
		return nil
	}
	server, err := o.toolServer(p.wanted)
	if err != nil {
		return err
	}
	beside, links := filepath.Join(filepath.Dir(path), configName), settings.Links(o.follow)
	edit := configfile.UninstallFile(beside, links, server, o.lastOf(path, p.wiring))
	if p.install {
		edit = configfile.InstallFile(beside, links, hooksBelow(beside), server, p.wanted)
	}
	look := edit
	look.Links = settings.FollowLinks // a link that needs no edit is nobody's business
	file, after, err := look.Look()
	switch {
	case err != nil && p.wanted:
		return fmt.Errorf("--mcp: %w", err)
	case err != nil && p.install:
		s.Note("Codex may have hooks switched off: %v", err)
		return nil
	case err != nil && bytes.Contains(file, []byte("heartbeat")):
		s.Note("what install wrote there is left as it is: %v", err)
		return nil
	case err != nil || bytes.Equal(file, after) && !p.wanted:
		return nil
	}
	was, _ := configfile.HooksIn(file)
	will, _ := configfile.HooksIn(after)
	switch {
	case was == will:
	case p.install:
		p.would = append(p.would, beside+" would switch hooks on")
		p.did = fmt.Sprintf("Codex's hooks were switched off: %s switches them on, all that are there", beside)
	default:
		p.did = "Codex's hooks are switched off again in " + beside
	}
	if p.wanted || configfile.HasServer(file, server) {
		p.have(edit, server)
	}
	p.beside = &edit
	return nil
}

// lastOf reports whether a hooks file without the wiring has no hook of heartbeat's, of any inbox.
func (o *installFlags) lastOf(path string, w settings.Wiring) bool {
	_, after, err := settings.UninstallFile(path, w, settings.FollowLinks).Look()
	if err != nil {
		return false
	}
	content, err := settings.Look(after, w.Command)
	return err == nil && len(content.Hooks) == 0
}

// hooksBelow is what a person's own config.toml says, where that at path has precedence.
func hooksBelow(path string) configfile.Hooks {
	home, err := os.UserHomeDir()
	hooks, errPath := settings.LinesPath(settings.User, "", home, os.Getenv("CODEX_HOME"))
	persons := filepath.Join(filepath.Dir(hooks), configName)
	if errors.Join(err, errPath) != nil || persons == path {
		return configfile.Unsaid
	}
	text, err := settings.Read(persons, settings.FollowLinks)
	if err != nil {
		return configfile.Unsaid
	}
	said, _ := configfile.HooksIn(text) // Codex itself says what is wrong with the file
	return said
}
