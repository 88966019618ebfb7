package command

import (
	"fmt"
	"path/filepath"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	mcp "heartbeat/internal/mcp/page"
)

// beside is what install and uninstall do about another file than that of the hooks.
type beside interface {
	// allowed is what the hooks' file says of the tools.
	allowed() *settings.Allowed
	// concerned is the file with the tools, "" if nothing is done about them.
	concerned() string
	// announce says what --print does not show.
	announce(s cli.Streams)
	// around edits the hooks' file, and before or after it the other one.
	around(hooks hooksFile, s cli.Streams) (changed bool, err error)
}

// hooksFile is the file with the hooks, and how it is edited.
type hooksFile struct {
	path     string
	wiring   settings.Wiring
	follow   settings.Links
	edit     func([]byte, settings.Wiring) ([]byte, error)
	editFile func(string, settings.Wiring, settings.Links) (bool, error)
}

func (h hooksFile) write() (bool, error) { return h.editFile(h.path, h.wiring, h.follow) }

// after edits another file before the hooks', which has to be one that can be edited.
func (h hooksFile) after(other func() (bool, error)) (changed bool, err error) {
	if err := h.check(); err != nil {
		return false, err
	}
	return both(other, h.write)
}

// before edits another file after the hooks'.
func (h hooksFile) before(other func() (bool, error)) (changed bool, err error) {
	return both(h.write, other)
}

// both reports whether one of two edits changed something. The second one follows a first one
// that did not fail.
func both(first, second func() (bool, error)) (changed bool, err error) {
	changed, err = first()
	if err != nil {
		return changed, err
	}
	also, err := second()
	return changed || also, err
}

// check returns an error if the file cannot be edited.
func (h hooksFile) check() error {
	text, err := settings.Read(h.path, h.follow)
	if err != nil {
		return err
	}
	if _, err = h.edit(text, h.wiring); err != nil {
		return fmt.Errorf("settings %s: %w", h.path, err)
	}
	return nil
}

// hooksAlone is for where no other file is concerned.
type hooksAlone struct{}

func (hooksAlone) allowed() *settings.Allowed                          { return nil }
func (hooksAlone) concerned() string                                   { return "" }
func (hooksAlone) announce(cli.Streams)                                {}
func (hooksAlone) around(hooks hooksFile, _ cli.Streams) (bool, error) { return hooks.write() }

// toolServer is the server with the tools of an agent. Where they are not wanted, only its
// name has to be known, by which those that are there are told from a person's own.
func (o *installFlags) toolServer() (settings.Server, error) {
	program, err := cli.Beside(mcp.CommandName)
	if err != nil && !o.mcp {
		program, err = filepath.Abs(mcp.CommandName)
	}
	if err == nil && o.mcp {
		err = lasts(program)
	}
	if err != nil {
		return settings.Server{}, fmt.Errorf("--mcp: %w", err)
	}
	args, err := mcp.Arguments(&mcp.Flags{Inbox: o.wired.Inbox, Role: mcp.Agent, Rate: mcp.DefaultRate})
	return settings.Server{Name: mcp.ServerName, Command: program, Args: args}, err
}
