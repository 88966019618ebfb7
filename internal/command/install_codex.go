package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/codex/config"
)

const (
	hooksName  = "hooks.json"
	configName = "config.toml"
)

// hookConfig is Codex's config.toml beside its hooks.json: it can switch hooks off, and has
// the tools of an agent.
type hookConfig struct {
	path    string
	below   config.Hooks // what the file says over which this one has precedence
	server  settings.Server
	install bool
	wanted  bool // the tools are
	follow  settings.Links

	// What is done, by the file as it was found.
	edits, switches, tools bool
}

// hookConfig returns what install or uninstall does about config.toml.
func (o *installFlags) hookConfig(hooksPath, verb string, s cli.Streams) (beside, error) {
	if filepath.Base(hooksPath) != hooksName {
		if o.mcp {
			return nil, cli.Usage(fmt.Errorf("--mcp writes the %s beside a %s, and %s is none: leave --mcp out, and see heartbeat-mcp print-config", configName, hooksName, hooksPath))
		}
		return hooksAlone{}, nil
	}
	server, err := o.toolServer()
	if err != nil {
		return nil, err
	}
	c := &hookConfig{
		path: filepath.Join(filepath.Dir(hooksPath), configName), server: server, install: verb == "install",
		wanted: o.mcp && verb == "install", follow: settings.Links(o.follow),
	}
	c.below = hooksBelow(c.path)
	err = c.plan()
	switch {
	case err != nil && c.wanted:
		return nil, fmt.Errorf("--mcp: %w", err)
	case err != nil && c.install:
		s.Note("Codex may have hooks switched off: %v", err)
		return hooksAlone{}, nil
	case err != nil:
		s.Note("what install wrote there is left as it is: %v", err)
		return hooksAlone{}, nil
	case !c.edits && !c.tools:
		return hooksAlone{}, nil
	}
	return c, nil
}

// hooksBelow is what a person's own config.toml says, where that at path has precedence.
func hooksBelow(path string) config.Hooks {
	home, err := os.UserHomeDir()
	if err != nil {
		return config.Unsaid
	}
	hooks, err := settings.LinesPath(settings.User, "", home, os.Getenv("CODEX_HOME"))
	persons := filepath.Join(filepath.Dir(hooks), configName)
	if err != nil || persons == path {
		return config.Unsaid
	}
	text, err := settings.Read(persons, settings.FollowLinks)
	if err != nil {
		return config.Unsaid
	}
	said, _ := config.HooksIn(text) // Codex itself says what is wrong with the file
	return said
}

// plan finds out what there is to do. Uninstall switches hooks back only once hooks.json has
// none of heartbeat's, so that it has to be seen then.
func (c *hookConfig) plan() error {
	text, err := settings.Read(c.path, settings.FollowLinks)
	if err != nil {
		return err
	}
	if !c.install && !bytes.Contains(text, []byte("heartbeat")) {
		return nil
	}
	on := text
	if c.install {
		on, err = config.SwitchOn(text, c.below)
	} else {
		on, err = config.SwitchBack(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	c.switches = !bytes.Equal(text, on)
	after, err := c.withTools(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	c.tools = c.wanted || !bytes.Equal(text, after)
	c.edits = c.switches || !bytes.Equal(text, after)
	return nil
}

// withTools is config.toml with the tools, or without them.
func (c *hookConfig) withTools(text []byte) ([]byte, error) {
	if c.wanted {
		return config.InstallServer(text, c.server)
	}
	return config.UninstallServer(text, c.server)
}

// allowed is nil: the server's own table says that its tools are used without asking.
func (c *hookConfig) allowed() *settings.Allowed { return nil }

func (c *hookConfig) concerned() string {
	if !c.tools {
		return ""
	}
	return c.path
}

func (c *hookConfig) announce(s cli.Streams) {
	if c.switches && c.install {
		s.Note("%s would switch hooks on", c.path)
	}
	if c.tools {
		sayTools(s, c.path, c.server, c.wanted)
	}
}

// around edits config.toml before the hooks, or after them where they go: hooks that are
// switched on and are not there do nothing.
func (c *hookConfig) around(hooks hooksFile, s cli.Streams) (bool, error) {
	if c.install {
		return hooks.after(func() (bool, error) { return c.switchOn(s) })
	}
	return hooks.before(func() (bool, error) { return c.switchBack(noneLeft(hooks), s) })
}

func (c *hookConfig) switchOn(s cli.Streams) (bool, error) {
	changed, err := c.edit(func(text []byte) ([]byte, error) {
		on, err := config.SwitchOn(text, c.below)
		if err != nil {
			return nil, err
		}
		return c.withTools(on)
	})
	if err == nil && c.switches {
		s.Note("Codex's hooks were switched off: %s switches them on, all that are there", c.path)
	}
	return changed, err
}

// switchBack leaves hooks switched on unless the last inbox has gone.
func (c *hookConfig) switchBack(last bool, s cli.Streams) (bool, error) {
	changed, err := c.edit(func(text []byte) ([]byte, error) {
		after, err := c.withTools(text)
		if err != nil || !last {
			return after, err
		}
		return config.SwitchBack(after)
	})
	if err == nil && last && c.switches {
		s.Note("Codex's hooks are switched off again in %s", c.path)
	}
	return changed, err
}

func (c *hookConfig) edit(change func([]byte) ([]byte, error)) (bool, error) {
	if !c.edits {
		return false, nil
	}
	return settings.EditFile(c.path, c.follow, "", change)
}

// noneLeft reports whether a hooks file has no hook of heartbeat's, of any inbox.
func noneLeft(hooks hooksFile) bool {
	text, err := settings.Read(hooks.path, hooks.follow)
	if err != nil {
		return false
	}
	content, err := settings.Look(text, hooks.wiring.Command)
	return err == nil && len(content.Hooks) == 0
}
