// Package configfile edits Codex's config.toml, which has the tools of an agent in one block at its end:
//
//	# heartbeat: begin
//	[mcp_servers.heartbeat]
//	args = ['mcp', '--inbox', '/srv/inbox.jsonl', '--role', 'agent']
//	command = '/opt/heartbeat/heartbeat'
//	default_tools_approval_mode = 'approve'
//	# heartbeat: end
//
// The parsed values are compared before and after: only heartbeat's own may differ.
package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"heartbeat/internal/claude/settings"
)

const (
	servers = "mcp_servers"
	begin   = "# heartbeat: begin"
	end     = "# heartbeat: end"
)

var block = regexp.MustCompile(`(?s)(?:^|\r?\n)` + begin + `\r?\n(.*?)` + end + `(?:\r?\n|$)`)

// HooksIn returns whether a file switches Codex's hooks on, and whether it switches them at all. The error names the line
// that is not valid TOML.
func HooksIn(text []byte) (on, set bool, err error) {
	values, err := parse(text)
	on = true
	for _, name := range []string{"hooks", "codex_hooks"} { // the second name is the older one
		if value, is := table(values, "features")[name].(bool); is {
			on, set = on && value, true
		}
	}
	return on, set, err
}

func parse(text []byte) (values map[string]any, err error) {
	if err = toml.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &values); err == nil { // Codex skips that mark
		return values, nil
	}
	at := ""
	if decode := (*toml.DecodeError)(nil); errors.As(err, &decode) {
		line, column := decode.Position()
		at = fmt.Sprintf(" at line %d, column %d", line, column)
	}
	return nil, fmt.Errorf("not valid TOML%s: %s: correct the file, then try again", at, strings.TrimPrefix(err.Error(), "toml: "))
}

func table(values map[string]any, name string) map[string]any {
	all, _ := values[name].(map[string]any)
	return all
}

// File returns the edit that adds the server's tools if they are wanted, and otherwise removes them.
func File(path string, links settings.Links, s settings.Server, wanted bool) settings.Edit {
	return settings.Edit{
		Path: path, Links: links, Name: path,
		Change: func(file, _ []byte) ([]byte, error) { return change(file, s, wanted) },
		Holds:  block.Match,
		Same:   func(a, b []byte) bool { return bytes.Equal(trimmed(a), trimmed(b)) },
	}
}

func trimmed(text []byte) []byte { return bytes.TrimRight(text, "\r\n") }

// change returns the file with the server, or without it. A person's additions to the server's table stay. A server of
// the same name for another inbox is an error only if this server is wanted.
func change(file []byte, s settings.Server, wanted bool) ([]byte, error) {
	before, err := parse(file)
	if err != nil {
		return nil, err
	}
	own, err := existing(file, before, s)
	if err != nil && wanted {
		return nil, err
	}
	var all map[string]any
	if wanted {
		args := make([]any, len(s.Args))
		for i, arg := range s.Args {
			args[i] = arg
		}
		all = map[string]any{}
		maps.Copy(all, own)
		maps.Copy(all, map[string]any{"command": s.Command, "args": args, "default_tools_approval_mode": "approve"})
	}
	if reflect.DeepEqual(all, own) {
		return file, nil
	}
	text := withBlock(file, s.Name, all)
	after, err := parse(text)
	if err != nil || wanted != (table(after, servers)[s.Name] != nil) || !reflect.DeepEqual(rest(before, s.Name), rest(after, s.Name)) {
		return nil, fmt.Errorf("%s.%s is not in heartbeat's part of the file, or that part has more in or behind it, or cannot have it: "+
			"write or remove it by hand, then try again", servers, s.Name)
	}
	return text, nil
}

// withBlock returns the text with a block for the server, or without one if own is empty.
func withBlock(text []byte, name string, own map[string]any) []byte {
	text = slices.Clone(trimmed(block.ReplaceAll(text, []byte("\n"))))
	if len(text) > 0 {
		text = append(text, '\n')
	}
	if len(own) == 0 {
		return text
	}
	if len(text) > 0 {
		text = append(text, '\n')
	}
	inner, err := toml.Marshal(map[string]any{servers: map[string]any{name: own}})
	if err != nil {
		panic(err) // own holds only what was parsed, and strings
	}
	return fmt.Appendf(text, "%s\n%s%s\n", begin, strings.Replace(string(inner), "["+servers+"]\n", "", 1), end)
}

func rest(values map[string]any, server string) map[string]any {
	others := maps.Clone(table(values, servers))
	delete(others, server)
	all := maps.Clone(values)
	if all[servers] = others; len(others) == 0 {
		delete(all, servers)
	}
	return all
}

// existing returns what the file has for the server, or nil. Another server of that name is an error.
func existing(text []byte, values map[string]any, s settings.Server) (map[string]any, error) {
	value, there := table(values, servers)[s.Name]
	if !there {
		return nil, nil
	}
	own, _ := value.(map[string]any)
	command, _ := own["command"].(string)
	if args, _ := settings.Texts(own["args"]); s.Is(command, args) {
		return own, nil
	}
	line := 1
	if at := regexp.MustCompile(servers + `\W+` + s.Name + `|` + servers).FindIndex(text); at != nil {
		line += bytes.Count(text[:at[0]], []byte("\n"))
	}
	return nil, s.Taken(servers+"."+s.Name, line, command)
}
