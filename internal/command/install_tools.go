package command

import (
	"fmt"
	"path/filepath"
	"slices"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
)

// projectTools are the tools of an agent in a project of Claude Code: the server in its
// .mcp.json, which the settings allow.
type projectTools struct {
	path   string // of the .mcp.json
	server settings.Server
	wanted bool
	known  bool // the file has the server
	follow settings.Links
}

// projectTools returns what install or uninstall does about the tools.
func (o *installFlags) projectTools(settingsPath, verb string, _ cli.Streams) (beside, error) {
	above := filepath.Dir(settingsPath)
	isProjects := o.scope != string(settings.User) && filepath.Base(above) == ".claude" &&
		slices.Contains([]string{"settings.json", "settings.local.json"}, filepath.Base(settingsPath))
	if !isProjects {
		if o.mcp {
			return nil, cli.Usage(fmt.Errorf("--mcp writes the %s of a project, and %s is not the settings file of one: leave --mcp out, and see heartbeat-mcp print-config", settings.ServersName, settingsPath))
		}
		return hooksAlone{}, nil
	}
	server, err := o.toolServer()
	if err != nil {
		return nil, err
	}
	t := &projectTools{
		path: filepath.Join(filepath.Dir(above), settings.ServersName), server: server,
		wanted: o.mcp && verb == "install", follow: settings.Links(o.follow),
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
		return hooksAlone{}, nil
	}
	return t, nil
}

func (t *projectTools) allowed() *settings.Allowed {
	return &settings.Allowed{Server: t.server.Name, Known: t.known, Drop: !t.wanted}
}

func (t *projectTools) concerned() string { return t.path }

func (t *projectTools) announce(s cli.Streams) { sayTools(s, t.path, t.server, t.wanted) }

// around edits .mcp.json before the settings, or after them where the server goes: that it is
// in .mcp.json says that what allows it is of an install, also if one of the two was killed
// between the files. Settings that cannot be edited leave both alone.
func (t *projectTools) around(hooks hooksFile, _ cli.Streams) (bool, error) {
	if !t.wanted {
		return hooks.before(func() (bool, error) { return settings.UninstallServerFile(t.path, t.server, t.follow) })
	}
	return hooks.after(func() (bool, error) { return settings.InstallServerFile(t.path, t.server, t.follow) })
}

// sayTools says what would become of a file with servers.
func sayTools(s cli.Streams, path string, server settings.Server, wanted bool) {
	if wanted {
		s.Note("%s would start %s as the server %s", path, server.Command, server.Name)
		return
	}
	s.Note("%s would no longer start the server %s", path, server.Name)
}
