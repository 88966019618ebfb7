package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"heartbeat/internal/claude/settings"
)

const (
	servers = "mcp_servers"
	// mostTables is how many tables of a server are taken out.
	mostTables = 100
)

// member is a key of a server's table.
type member struct {
	key   string
	value any
}

// members are a server as it is written. Codex uses its tools without asking.
func members(s settings.Server) []member {
	return []member{{"command", s.Command}, {"args", s.Args}, {"default_tools_approval_mode", "approve"}}
}

func (m member) spelled() string {
	line, err := toml.Marshal(map[string]any{m.key: m.value})
	if err != nil { // strings can all be spelled
		panic(err)
	}
	return strings.TrimSuffix(string(line), "\n")
}

// is reports whether a value that was read is the member's.
func (m member) is(value any) bool {
	var wanted map[string]any
	err := toml.Unmarshal([]byte(m.spelled()), &wanted)
	return err == nil && reflect.DeepEqual(wanted[m.key], value)
}

// InstallServer returns the file with the server in it. What a person added to its table stays. The error is a
// [*settings.ServerError] if another server has the name.
func InstallServer(text []byte, s settings.Server) ([]byte, error) {
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	have, err := d.server(s)
	if err != nil {
		return nil, err
	}
	if have == nil {
		return checked(d.appended(spelled(s)), s)
	}
	for _, m := range members(s) {
		if m.is(have[m.key]) {
			continue
		}
		if text, err = set(text, s.Name, m); err != nil {
			return nil, err
		}
	}
	return checked(text, s)
}

// spelled is the table of a server.
func spelled(s settings.Server) string {
	lines := []string{"[" + servers + "." + s.Name + "]"}
	for _, m := range members(s) {
		lines = append(lines, m.spelled())
	}
	return strings.Join(lines, "\n")
}

// set gives a key of the server's table its value.
func set(text []byte, name string, m member) ([]byte, error) {
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	header := d.table(servers, name)
	if header < 0 {
		return nil, formError(name)
	}
	for _, p := range d.keyed(header) {
		if slices.Equal(p.path, []string{servers, name, m.key}) {
			return d.replaced(p.span, m.spelled()), nil
		}
	}
	return d.below(header, m.spelled()), nil
}

func formError(name string) error {
	return fmt.Errorf("%s.%s is not a table of its own, and cannot be edited: write or remove it by hand, then try again", servers, name)
}

// checked is a text that has the server whole.
func checked(text []byte, s settings.Server) ([]byte, error) {
	d, err := parse(text)
	if err != nil {
		return nil, formError(s.Name)
	}
	have, err := d.server(s)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(members(s), func(m member) bool { return !m.is(have[m.key]) }) {
		return nil, formError(s.Name)
	}
	return text, nil
}

// HasServer reports whether a file has the server, for the same inbox.
func HasServer(text []byte, s settings.Server) (bool, error) {
	d, err := parse(text)
	if err != nil {
		return false, err
	}
	have, err := d.server(s)
	return err == nil && have != nil, nil
}

// server is what the file has for the server, nil for nothing.
func (d document) server(s settings.Server) (map[string]any, error) {
	all, _ := d.values[servers].(map[string]any)
	value, there := all[s.Name]
	if !there {
		return nil, nil
	}
	have, _ := value.(map[string]any)
	command, _ := have["command"].(string)
	var args []string
	list, _ := have["args"].([]any)
	for _, arg := range list {
		text, _ := arg.(string)
		args = append(args, text)
	}
	if !s.Is(command, args) {
		return nil, &settings.ServerError{Name: s.Name, Member: servers + "." + s.Name, Line: d.lineOfServer(s.Name), Command: command}
	}
	return have, nil
}

// lineOfServer is the first line that names the server, or the first that names any.
func (d document) lineOfServer(name string) int {
	for _, path := range [][]string{{servers, name}, {servers}} {
		for _, p := range d.parts {
			if p.isWithin(path...) {
				return d.number(p.start)
			}
		}
	}
	return 1
}

// UninstallServer returns the file without the server, with the tables below its own, and nil if nothing is left. A server
// of the name that serves another inbox stays.
func UninstallServer(text []byte, s settings.Server) ([]byte, error) {
	for range mostTables {
		if has, err := HasServer(text, s); err != nil || !has {
			return text, err
		}
		d, err := parse(text)
		if err != nil {
			return nil, err
		}
		header := d.table(servers, s.Name)
		if header < 0 {
			return nil, formError(s.Name)
		}
		if below := d.tableBelow(servers, s.Name); below >= 0 {
			header = below
		}
		if text = d.dropped(d.body(header), true); text == nil {
			return nil, nil
		}
	}
	return nil, fmt.Errorf("%s.%s has more than %d tables below it: remove it by hand, then try again", servers, s.Name, mostTables-1)
}

// tableBelow is the index of the last header below a table, -1 if there is none.
func (d document) tableBelow(path ...string) int {
	for i, p := range slices.Backward(d.parts) {
		if p.isHeader() && len(p.path) > len(path) && p.isWithin(path...) {
			return i
		}
	}
	return -1
}
