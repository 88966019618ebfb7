package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
)

// ServersName is the project's file with the servers of the Model Context Protocol that its sessions may start.
const ServersName = ".mcp.json"

// Server is a server of the Model Context Protocol that serves one inbox, as the project's .mcp.json starts it.
type Server struct {
	// Name is what the client calls it: the tools are mcp__NAME__TOOL.
	Name string
	// Command is the absolute path of its program.
	Command string
	// Args are its arguments; they name the inbox as an absolute path, as those of a [Wiring] do.
	Args []string
}

// ServerError means that the file has another server of the name. It was not changed.
type ServerError struct {
	Name    string
	Member  string // mcpServers.NAME, or what stands for it in another client's file
	Line    int    // 1-based
	Command string // as far as it is known
}

// Error implements error.
func (e *ServerError) Error() string {
	return fmt.Sprintf("%s at line %d is another server (%q): it was not overwritten; rename or remove it, then try again",
		e.Member, e.Line, clip(e.Command))
}

// InstallServer returns the .mcp.json with the server in it, and all else as it was. A nil or empty file means that there
// is none. The error is a *SyntaxError, *ShapeError or *ServerError.
func InstallServer(file []byte, s Server) ([]byte, error) {
	e, mark := newEditor(file, Wiring{})
	if len(e.text) == 0 {
		l := layout{eol: "\n", unit: "  ", colon: ": ", comma: ", ", lines: true}
		return slices.Concat(mark, []byte(l.spell([]member{{"mcpServers", []member{{s.Name, s.members()}}}})+l.eol)), nil
	}
	d, servers, at, err := e.server(s)
	if err != nil {
		return nil, err
	}
	switch {
	case servers == nil:
		e.text = d.insert(d.top(), member{"mcpServers", []member{{s.Name, s.members()}}})
	case at < 0:
		e.text = d.insert(*servers, member{s.Name, s.members()})
	default:
		have := servers.items[at].value
		if reflect.DeepEqual(decode(have), s.decoded()) {
			return file, nil
		}
		spelled := d.layoutIn(*servers).spell(s.members())
		e.text = splice(d.text, edit{at: have.StartOffset, cut: have.EndOffset - have.StartOffset, text: spelled})
	}
	_, err = parse(e.text)
	return slices.Concat(mark, e.text), err
}

// UninstallServer returns the .mcp.json without the server, nil if nothing is left. A server of the name that serves
// another inbox stays.
func UninstallServer(file []byte, s Server) ([]byte, error) {
	e, mark := newEditor(file, Wiring{})
	if has, err := HasServer(file, s); err != nil || !has {
		return file, err
	}
	d, servers, at, err := e.server(s)
	if err != nil {
		return nil, err
	}
	top := d.top()
	e.text = d.remove([]place{{top, top.find("mcpServers")}, {*servers, at}})
	switch {
	case len(e.text) > 0:
		return slices.Concat(mark, e.text), nil
	case len(mark) > 0:
		return slices.Concat(mark, []byte("{}\n")), nil
	}
	return nil, nil
}

// HasServer reports whether a .mcp.json has the server, for the same inbox.
func HasServer(file []byte, s Server) (bool, error) {
	e, _ := newEditor(file, Wiring{})
	if len(e.text) == 0 {
		return false, nil
	}
	_, servers, at, err := e.server(s)
	var another *ServerError
	if errors.As(err, &another) {
		return false, nil
	}
	return err == nil && servers != nil && at >= 0, err
}

// InstallServerFile applies InstallServer to a file, with the promises of [InstallFile].
func InstallServerFile(path string, s Server, links Links) (changed bool, err error) {
	return EditFile(path, links, emptyObject, func(file []byte) ([]byte, error) { return InstallServer(file, s) })
}

// UninstallServerFile applies UninstallServer to a file, with the promises of [UninstallFile].
func UninstallServerFile(path string, s Server, links Links) (changed bool, err error) {
	return EditFile(path, links, emptyObject, func(file []byte) ([]byte, error) { return UninstallServer(file, s) })
}

// server returns the object of the servers, nil if there is none, and the index in it of the one of this name and inbox,
// or -1.
func (e *editor) server(s Server) (d document, servers *box, at int, err error) {
	if d, err = parse(e.text); err != nil {
		return d, nil, -1, err
	}
	all, ok, err := d.object(d.top(), "mcpServers", "mcpServers")
	if err != nil || !ok {
		return d, nil, -1, err
	}
	at = all.find(s.Name)
	if at < 0 {
		return d, &all, -1, nil
	}
	value := all.items[at].value
	have, _ := decode(value).(map[string]any)
	command, _ := have["command"].(string)
	var args []string
	if list, ok := have["args"].([]any); ok {
		for _, arg := range list {
			text, _ := arg.(string)
			args = append(args, text)
		}
	}
	if !s.Is(command, args) {
		return d, nil, -1, &ServerError{Name: s.Name, Member: "mcpServers." + s.Name, Line: d.line(value.StartOffset), Command: command}
	}
	return d, &all, at, nil
}

// Is reports whether a command with its arguments is this server, for the same inbox.
func (s Server) Is(command string, args []string) bool {
	theirs, named := inboxFlag(args)
	wanted, _ := inboxFlag(s.Args)
	return filepath.Base(command) == filepath.Base(s.Command) && named && compareInbox(theirs, wanted) == same
}

// members is the server as it is written. Without alwaysLoad the client hides the tools behind a search.
func (s Server) members() []member {
	args := make([]any, 0, len(s.Args))
	for _, arg := range s.Args {
		args = append(args, arg)
	}
	return []member{{"type", "stdio"}, {"command", s.Command}, {"args", args}, {"alwaysLoad", true}}
}

// decoded is the server as decode returns it.
func (s Server) decoded() any {
	all := map[string]any{}
	for _, m := range s.members() {
		all[m.name] = m.value
	}
	return all
}
