// Package configfile edits Codex's config.toml: whether hooks run, and the tools of an agent.
//
// What install writes is a block at the end of the file:
//
//	# heartbeat: begin
//	[mcp_servers.heartbeat]
//	args = ['mcp', '--inbox', '/srv/inbox.jsonl', '--role', 'agent']
//	command = '/opt/heartbeat/heartbeat'
//	default_tools_approval_mode = 'approve'
//	# heartbeat: end
//
// Where hooks have to be switched on, the block says so too, but in a file that has a table of features, which TOML allows
// once: there it is a line of that table. Where a file switches hooks off, that is turned round in its place:
//
//	[features]
//	# heartbeat install: features.hooks was false
//	hooks = true
//
// Text is changed by lines, and what it means is compared before and after: only heartbeat's own may differ.
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
	features = "features"
	servers  = "mcp_servers"
	begin    = "# heartbeat: begin"
	end      = "# heartbeat: end"
	mark     = "# heartbeat install"
	enabled  = "hooks = true " + mark
)

// names are the features that switch hooks on and off; the second one is the older name.
var names = []string{"hooks", "codex_hooks"}

var (
	block  = regexp.MustCompile(`(?s)(?:^|\r?\n)` + begin + `\n(.*?)` + end + `(?:\r?\n|$)`)
	header = regexp.MustCompile(`(?m)^[ \t]*\[[ \t]*["']?features["']?[ \t]*\][^\n]*`)
	wasOff = regexp.MustCompile(`(?m)^` + mark + `: features\.(\w+) was false\r?\n`)
	added  = regexp.MustCompile(`(?m)(?:^` + enabled + `\r?\n|\n` + enabled + `\r?\z)`)
)

// Hooks is what a file says of Codex's hooks.
type Hooks int

// What a file may say. Codex runs hooks where no file says anything.
const (
	Unsaid Hooks = iota
	On
	Off
)

// HooksIn returns what a file says. The error names the line that is no TOML.
func HooksIn(text []byte) (Hooks, error) {
	values, err := parse(text)
	said := Unsaid
	for _, name := range names {
		switch feature(values, name) {
		case false:
			return Off, err
		case true:
			said = On
		}
	}
	return said, err
}

func parse(text []byte) (values map[string]any, err error) {
	if err = toml.Unmarshal(text, &values); err == nil {
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

// feature is a feature's value, nil if the file has none.
func feature(values map[string]any, name string) any { return table(values, features)[name] }

// InstallFile is the edit that switches hooks on where they are off, and gives Codex the tools of a server, or takes them
// out if they are not wanted. below is what the files say over which this one has precedence.
func InstallFile(path string, links settings.Links, below Hooks, server settings.Server, wanted bool) settings.Edit {
	return edit(path, links, server, func(text []byte) ([]byte, error) {
		text, err := switchOn(text, below)
		if err == nil {
			text, err = setServer(text, server, wanted)
		}
		return text, err
	})
}

// UninstallFile is the edit that takes the tools of a server out again, and, with the last inbox, switches hooks back.
func UninstallFile(path string, links settings.Links, server settings.Server, last bool) settings.Edit {
	return edit(path, links, server, func(text []byte) ([]byte, error) {
		text, err := setServer(text, server, false)
		if err == nil && last {
			text, err = switchBack(text)
		}
		return text, err
	})
}

func edit(path string, links settings.Links, server settings.Server, change func([]byte) ([]byte, error)) settings.Edit {
	return settings.Edit{
		Path: path, Links: links, Name: path,
		Change: func(file, _ []byte) ([]byte, error) {
			before, err := parse(file)
			if err != nil {
				return nil, err
			}
			text, err := change(file)
			if err != nil || bytes.Equal(text, file) {
				return file, err
			}
			after, err := parse(text)
			if err != nil || !reflect.DeepEqual(rest(before, server.Name), rest(after, server.Name)) {
				return nil, fmt.Errorf("there is more in or behind heartbeat's part of it, or that is in a form that cannot be edited: take %s.%s and %s.hooks out by hand, then try again", servers, server.Name, features)
			}
			return text, nil
		},
		Holds: func(file []byte) bool {
			return block.Match(file) || bytes.Contains(file, []byte(mark)) || HasServer(file, server)
		},
		Same: func(a, b []byte) bool { return slices.Equal(lines(a), lines(b)) },
	}
}

// rest is what a file means without what may be heartbeat's.
func rest(values map[string]any, server string) map[string]any {
	all := maps.Clone(values)
	for name, own := range map[string][]string{features: names, servers: {server}} {
		if _, isTable := all[name].(map[string]any); !isTable {
			continue
		}
		others := maps.Clone(table(all, name))
		for _, one := range own {
			delete(others, one)
		}
		if all[name] = others; len(others) == 0 {
			delete(all, name)
		}
	}
	return all
}

// lines are those that are not empty.
func lines(text []byte) (all []string) {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// switchOn switches hooks on where the file switches them off, and says so in the line before. Where the files below do,
// it says that they are on.
func switchOn(text []byte, below Hooks) ([]byte, error) {
	values, err := parse(text)
	if err != nil {
		return nil, err
	}
	if said, _ := HooksIn(text); said == Unsaid && below == Off {
		if at := header.FindIndex(text); at != nil {
			text = slices.Concat(text[:at[1]], []byte("\n"+enabled), text[at[1]:])
		} else {
			text = withBlock(text, func(own map[string]any) { own[features] = map[string]any{"hooks": true} })
		}
		if said, err := HooksIn(text); err != nil || said != On {
			return nil, errors.New("its features are not in a table [features], so that hooks cannot be switched on in it: add hooks = true to them, then try again")
		}
		return text, nil
	}
	for _, name := range names {
		if feature(values, name) != false {
			continue
		}
		flipped, at := turned(text, name, false)
		if at < 0 {
			return nil, fmt.Errorf("features.%s is false in a form that cannot be edited: make it true, then try again", name)
		}
		start := bytes.LastIndexByte(text[:at], '\n') + 1
		text = slices.Concat(flipped[:start], []byte(mark+": features."+name+" was false\n"), flipped[start:])
	}
	return text, nil
}

// turned gives a feature the opposite value, and returns where; -1 if it is in no form that can be edited.
func turned(text []byte, name string, from bool) (after []byte, at int) {
	value := regexp.MustCompile(fmt.Sprintf(`["']?\b%s["']?[ \t]*=[ \t]*(%t)\b`, name, from))
	for _, m := range value.FindAllSubmatchIndex(text, -1) {
		after = slices.Concat(text[:m[2]], fmt.Append(nil, !from), text[m[3]:])
		if values, err := parse(after); err == nil && feature(values, name) == !from {
			return after, m[0]
		}
	}
	return text, -1
}

// switchBack takes back what switchOn did. What a person has set since stays.
func switchBack(text []byte) ([]byte, error) {
	for _, m := range wasOff.FindAllSubmatch(text, -1) {
		text = bytes.Replace(text, m[0], nil, 1)
		values, err := parse(text)
		if err != nil {
			return nil, err
		}
		if name := string(m[1]); feature(values, name) == true {
			text, _ = turned(text, name, true)
		}
	}
	text = added.ReplaceAll(text, nil)
	return withBlock(text, func(own map[string]any) { delete(own, features) }), nil
}

// withBlock returns the text with another block, or without one if nothing is in it. A block that stays as it is is not
// touched.
func withBlock(text []byte, change func(own map[string]any)) []byte {
	own := map[string]any{}
	if m := block.FindSubmatch(text); m != nil {
		own, _ = parse(m[1])
	}
	before := fmt.Sprint(own)
	if change(own); fmt.Sprint(own) == before {
		return text
	}
	text = block.ReplaceAll(text, []byte("\n"))
	if text = bytes.TrimRight(text, "\r\n"); len(text) > 0 {
		text = append(slices.Clone(text), '\n')
	}
	if len(own) == 0 {
		return text
	}
	if len(text) > 0 {
		text = append(text, '\n')
	}
	inner, err := toml.Marshal(own)
	if err != nil {
		panic(err) // of what was read, strings and a boolean
	}
	return fmt.Appendf(text, "%s\n%s%s\n", begin, strings.Replace(string(inner), "["+servers+"]\n", "", 1), end)
}

// have is what a file has for the server, nil for nothing. A server of the name that is another is an error.
func have(text []byte, s settings.Server) (map[string]any, error) {
	values, err := parse(text)
	value, there := table(values, servers)[s.Name]
	if err != nil || !there {
		return nil, err
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

// HasServer reports whether a file has the server, for the same inbox.
func HasServer(text []byte, s settings.Server) bool {
	own, err := have(text, s)
	return err == nil && own != nil
}

// setServer puts the server into the block, or takes it out. What a person added to its table stays with it. A server of
// the name that serves another inbox is only an error if this one is wanted.
func setServer(text []byte, s settings.Server, wanted bool) ([]byte, error) {
	own, err := have(text, s)
	if err != nil && wanted {
		return nil, err
	}
	if !wanted {
		if own == nil {
			return text, nil
		}
		text = withBlock(text, func(own map[string]any) { delete(own, servers) })
	} else {
		args := make([]any, len(s.Args))
		for i, arg := range s.Args {
			args[i] = arg
		}
		all := map[string]any{}
		maps.Copy(all, own)
		maps.Copy(all, map[string]any{"command": s.Command, "args": args, "default_tools_approval_mode": "approve"})
		if reflect.DeepEqual(all, own) {
			return text, nil
		}
		text = withBlock(text, func(own map[string]any) { own[servers] = map[string]any{s.Name: all} })
	}
	if values, err := parse(text); err != nil || wanted != (table(values, servers)[s.Name] != nil) {
		return nil, fmt.Errorf("%s.%s is not in heartbeat's part of the file, or that cannot have it: write or remove it by hand, then try again", servers, s.Name)
	}
	return text, nil
}
