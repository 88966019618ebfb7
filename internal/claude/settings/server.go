package settings

import (
	"fmt"
	"path/filepath"
	"slices"
)

// ServersName is the project's file with the servers of the Model Context Protocol that its sessions may start.
const ServersName = ".mcp.json"

// serverName is the base name of the command that is such a server.
const (
	serverName = "heartbeat-mcp"
	serverVerb = "mcp"
)

// Server is a server of the Model Context Protocol that serves one inbox, as the project's .mcp.json starts it.
type Server struct {
	// Name is what the client calls it: the tools are mcp__NAME__TOOL.
	Name string
	// Command is the absolute path of its program.
	Command string
	// Args are its arguments; they name the inbox as an absolute path, as those of a [Wiring] do.
	Args []string
}

// InstallServer returns the .mcp.json with the server in it, and all else as it was. A nil or empty file means that there
// is none. Another server of the name is an error.
func InstallServer(file []byte, s Server) ([]byte, error) {
	d, err := parse(file)
	if err != nil {
		return nil, err
	}
	if v := d.at("mcpServers", s.Name); v != nil && !s.is(d) {
		command, _ := d.server(s.Name)
		return nil, s.Taken("mcpServers."+s.Name, d.line(v), command)
	}
	// Without alwaysLoad the client hides the tools behind a search.
	members := []member{{"type", "stdio"}, {"command", s.Command}, {"args", s.Args}, {"alwaysLoad", true}}
	if err := d.putAll(members, "mcpServers", s.Name); err != nil {
		return nil, err
	}
	return d.edited(file), nil
}

// InstallFile is the edit that puts the server into the .mcp.json at path.
func (s Server) InstallFile(path string, links Links) Edit {
	return s.file(path, links, func(file, _ []byte) ([]byte, error) { return InstallServer(file, s) })
}

// UninstallFile is the edit that takes the server out again. One of the name that serves another inbox stays.
func (s Server) UninstallFile(path string, links Links) Edit {
	return s.file(path, links, func(file, before []byte) ([]byte, error) {
		d, err := parse(file)
		if err != nil || !s.is(d) {
			return file, err
		}
		d.drop(known(before), "mcpServers", s.Name)
		return d.edited(file), nil
	})
}

func (s Server) file(path string, links Links, change func(file, before []byte) ([]byte, error)) Edit {
	holds := func(file []byte) bool {
		d, err := parse(file)
		if err != nil {
			return false
		}
		command, args := d.server(s.Name)
		_, named := inboxFlag(args)
		return named && isServer(command, args)
	}
	return Edit{Path: path, Links: links, Name: path, Change: change, Holds: holds, Same: same}
}

// In reports whether a .mcp.json has the server, for the same inbox.
func (s Server) In(file []byte) bool {
	d, err := parse(file)
	return err == nil && s.is(d)
}

func (s Server) is(d *document) bool {
	command, args := d.server(s.Name)
	return s.Is(command, args)
}

// Taken is the error of a file that has another server of the name, which is not overwritten.
func (s Server) Taken(member string, line int, command string) error {
	return fmt.Errorf("%s at line %d is another server (%q): it was not overwritten; rename or remove it, then try again", member, line, clip(command))
}

// server returns the command and the arguments of a server.
func (d *document) server(name string) (command string, args []string) {
	command, _ = d.textAt("mcpServers", name, "command")
	args, _ = Texts(decode(d.at("mcpServers", name, "args")))
	return command, args
}

// Is reports whether a command with its arguments is this server, for the same inbox.
func (s Server) Is(command string, args []string) bool {
	theirs, named := inboxFlag(args)
	wanted, _ := inboxFlag(s.Args)
	return isServer(command, args) && named && compareInbox(theirs, wanted) == equal
}

// isServer reports whether a command is heartbeat's server, by its old name or its new one.
func isServer(command string, args []string) bool {
	base := filepath.Base(command)
	return base == serverName || base == "heartbeat" && slices.Contains(args[:min(1, len(args))], serverVerb)
}
