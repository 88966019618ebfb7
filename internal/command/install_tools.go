package command

import (
	"fmt"
	"path/filepath"
	"slices"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	mcp "heartbeat/internal/mcp/page"
)

// projectTools are the tools of an agent in a project: the server in its .mcp.json, which
// the settings allow. A nil one changes nothing.
type projectTools struct {
	path   string // of the .mcp.json
	server settings.Server
	wanted bool
	known  bool // the file has the server
	follow settings.Links
}

// projectTools returns what install or uninstall does about the tools, nil for nothing.
func (o *installFlags) projectTools(settingsPath, verb string) (*projectTools, error) {
	above := filepath.Dir(settingsPath)
	isProjects := o.scope != string(settings.User) && filepath.Base(above) == ".claude" &&
		slices.Contains([]string{"settings.json", "settings.local.json"}, filepath.Base(settingsPath))
	if !isProjects {
		if o.mcp {
			return nil, cli.Usage(fmt.Errorf("--mcp writes the %s of a project, and %s is not the settings file of one: leave --mcp out, and see heartbeat-mcp print-config", settings.ServersName, settingsPath))
		}
		return nil, nil
	}
	program, err := cli.Beside(mcp.CommandName)
	if err != nil && !o.mcp {
		program, err = filepath.Abs(mcp.CommandName) // only its name tells which server is its own
	}
	if err != nil {
		return nil, fmt.Errorf("--mcp: %w", err)
	}
	args, err := mcp.Arguments(&mcp.Flags{Inbox: o.wired.Inbox, Role: mcp.Agent, Rate: mcp.DefaultRate})
	if err != nil {
		return nil, err
	}
	t := &projectTools{
		path: filepath.Join(filepath.Dir(above), settings.ServersName), wanted: o.mcp && verb == "install", follow: settings.Links(o.follow),
		server: settings.Server{Name: mcp.ServerName, Command: program, Args: args},
	}
	if t.wanted {
		if err := lasts(program); err != nil {
			return nil, err
		}
	}
	text, err := settings.Read(t.path, t.follow)
	if err != nil && t.wanted {
		return nil, fmt.Errorf("--mcp: %w", err)
	}
	t.known, err = settings.HasServer(text, t.server)
	switch {
	case t.wanted:
		if _, err = settings.InstallServer(text, t.server); err != nil {
			return nil, fmt.Errorf("--mcp: %s: %w", t.path, err)
		}
	case err != nil || !t.known: // a file that cannot be read has nothing of ours
		return nil, nil
	}
	return t, nil
}

// allowed is what the settings say of the server.
func (t *projectTools) allowed() *settings.Allowed {
	if t == nil {
		return nil
	}
	return &settings.Allowed{Server: t.server.Name, Known: t.known, Drop: !t.wanted}
}

// concerned is the .mcp.json, "" if nothing is done about it.
func (t *projectTools) concerned() string {
	if t == nil {
		return ""
	}
	return t.path
}

// announce says what --print does not show.
func (t *projectTools) announce(s cli.Streams) {
	switch {
	case t == nil:
	case t.wanted:
		s.Note("%s would start %s as the server %s", t.path, t.server.Command, t.server.Name)
	default:
		s.Note("%s would no longer start the server %s", t.path, t.server.Name)
	}
}

// around edits .mcp.json before the settings, or after them where the server goes: that it is
// in .mcp.json says that what allows it is of an install, also if one of the two was killed
// between the files. Settings that cannot be edited leave both alone.
func (t *projectTools) around(path string, w settings.Wiring, edit func([]byte, settings.Wiring) ([]byte, error), settingsFile func() (bool, error)) (bool, error) {
	if t == nil {
		return settingsFile()
	}
	if !t.wanted {
		changed, err := settingsFile()
		if err != nil {
			return changed, err
		}
		also, err := settings.UninstallServerFile(t.path, t.server, t.follow)
		return changed || also, err
	}
	text, err := settings.Read(path, t.follow)
	if err != nil {
		return false, err
	}
	if _, err = edit(text, w); err != nil {
		return false, fmt.Errorf("settings %s: %w", path, err)
	}
	also, err := settings.InstallServerFile(t.path, t.server, t.follow)
	if err != nil {
		return also, err
	}
	changed, err := settingsFile()
	return changed || also, err
}
