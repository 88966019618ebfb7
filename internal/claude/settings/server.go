package settings

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// ServersName is the project's file with the MCP servers that its sessions may start.
const ServersName = ".mcp.json"

// Server is an MCP server for one inbox, as the project's .mcp.json starts it.
type Server struct {
	Name    string   // the client's name for it: the tools are mcp__NAME__TOOL
	Command string   // the absolute path of its program
	Args    []string // name the inbox as an absolute path, like those of a [Wiring]
}

// AgentRate is how many entries an agent may send into an inbox in an hour. It may pass work on, but not do only that.
const AgentRate = 60

// AgentServer returns the server of an agent's tools, which a client starts with the program heartbeat. inbox is an
// absolute path.
func AgentServer(heartbeat, inbox string) Server {
	return Server{Name: "heartbeat", Command: heartbeat, Args: []string{"mcp", "--inbox", inbox, "--role", "agent", "--rate", strconv.Itoa(AgentRate)}}
}

// InstallServer returns the .mcp.json with the server added and all else unchanged. A nil or empty file means that
// there is none. Another server of the same name is an error.
func InstallServer(file []byte, s Server) ([]byte, error) {
	d, err := parse(file)
	if err != nil {
		return nil, err
	}
	command, args := d.server(s.Name)
	if v := d.at("mcpServers", s.Name); v != nil && !s.Is(command, args) {
		return nil, s.Taken("mcpServers."+s.Name, d.line(v), command)
	}
	// Without alwaysLoad the client hides the tools behind a search.
	members := []member{{"type", "stdio"}, {"command", s.Command}, {"args", s.Args}, {"alwaysLoad", true}}
	if err := d.putAll(members, "mcpServers", s.Name); err != nil {
		return nil, err
	}
	return d.edited(file), nil
}

// File returns the edit that adds the server to the .mcp.json at path if it is wanted, and otherwise removes it. A
// server of the same name for another inbox stays.
func (s Server) File(path string, links Links, wanted bool) Edit {
	change := func(file, before []byte) ([]byte, error) {
		if wanted {
			return InstallServer(file, s)
		}
		d, err := parse(file)
		if err != nil || !s.Is(d.server(s.Name)) {
			return file, err
		}
		was, _ := parse(before)
		d.drop(was, "mcpServers", s.Name)
		return d.edited(file), nil
	}
	holds := func(file []byte) bool {
		d, err := parse(file)
		if err != nil {
			return false
		}
		_, is := servedBy(d.server(s.Name))
		return is
	}
	return Edit{Path: path, Links: links, Name: path, Change: change, Holds: holds, Same: same}
}

// Taken is the error for a file with another server of the same name, which is not overwritten.
func (s Server) Taken(member string, line int, command string) error {
	return fmt.Errorf("%s at line %d is another server (%q): it was not overwritten; rename or remove it, then try again", member, line, clip(command, 160))
}

func (d *document) server(name string) (command string, args []string) {
	args, _ = Texts(decode(d.at("mcpServers", name, "args")))
	return d.textAt("mcpServers", name, "command"), args
}

// Is reports whether a command with its arguments is this server, for the same inbox.
func (s Server) Is(command string, args []string) bool {
	theirs, is := servedBy(command, args)
	wanted, _ := inboxFlag(s.Args)
	return is && compareInbox(theirs, wanted) == equal
}

// servedBy returns the inbox of heartbeat's server, and whether a command is that server: heartbeat mcp, in earlier
// releases heartbeat-mcp.
func servedBy(command string, args []string) (inbox string, is bool) {
	base := filepath.Base(command)
	if base != "heartbeat-mcp" && (base != "heartbeat" || len(args) == 0 || args[0] != "mcp") {
		return "", false
	}
	return inboxFlag(args)
}
