package config

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxToolName is the longest name that the MCP allows for a tool.
const maxToolName = 128

func (p *parser) tools() (tools []Tool) {
	value, ok := p.need("tools")
	if !ok {
		return nil
	}
	all, _ := p.arrayAt("tools", value)
	named := map[string]int{}
	for i, v := range all {
		path := "tools[" + strconv.Itoa(i) + "]"
		tool, ok := p.tool(path, v)
		if !ok {
			return nil
		}
		if first, twice := named[tool.Name]; twice {
			p.fail(path+".name", "is that of tools[%d], too: %s", first, tool.Name)
			return nil
		}
		named[tool.Name] = i
		tools = append(tools, tool)
	}
	return tools
}

func (p *parser) tool(path string, value json.RawMessage) (t Tool, ok bool) {
	members, ok := p.objectAt(path, value)
	if !ok || !p.toolName(path+".name", members["name"], &t.Name) {
		return t, false
	}
	t.Params, t.Method = json.RawMessage("{}"), "POST"
	for _, optional := range []struct {
		name string
		read func(path string, value json.RawMessage) bool
	}{
		{"description", func(path string, v json.RawMessage) (ok bool) {
			t.Description, ok = p.stringAt(path, v)
			return ok
		}},
		{"params", func(path string, v json.RawMessage) bool {
			t.Params = v
			return p.isA("an object", path, v)
		}},
		{"idempotent", func(path string, v json.RawMessage) (ok bool) {
			t.Idempotent, ok = p.boolAt(path, v)
			return ok
		}},
		{"method", func(path string, v json.RawMessage) (ok bool) {
			t.Method, ok = p.methodAt(path, v)
			return ok
		}},
	} {
		v, there := members[optional.name]
		if there && kind(v) != "null" && !optional.read(path+"."+optional.name, v) {
			return t, false
		}
	}
	return t, true
}

func (p *parser) toolName(path string, value json.RawMessage, name *string) (ok bool) {
	if value == nil || kind(value) == "null" {
		p.fail(path, "is missing")
		return false
	}
	if *name, ok = p.stringAt(path, value); !ok {
		return false
	}
	if wrong := checkToolName(*name); wrong != "" {
		p.fail(path, "%s", wrong)
		return false
	}
	return true
}

func (p *parser) boolAt(path string, value json.RawMessage) (b, ok bool) {
	if kind(value) != "a boolean" {
		p.fail(path, "must be true or false, and is %s", kind(value))
		return false, false
	}
	return value[0] == 't', true
}

func (p *parser) methodAt(path string, value json.RawMessage) (string, bool) {
	method, ok := p.stringAt(path, value)
	switch {
	case !ok:
		return "", false
	case method != "GET" && method != "POST" && method != "DELETE":
		p.fail(path, "must be GET, POST or DELETE, and is %s", quoted(method))
		return "", false
	}
	return method, true
}

// checkToolName allows what the MCP allows, but for names that no route leads to: a
// hyphen becomes a slash in the guild's route, and a part . or .. is lost there.
func checkToolName(name string) string {
	if name == "" || len(name) > maxToolName {
		return "must have 1 to " + strconv.Itoa(maxToolName) + " characters, and has " + strconv.Itoa(len(name))
	}
	for _, r := range name {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-", r) {
			return "must consist of letters, digits, '_', '.' and '-', and is " + quoted(name)
		}
	}
	first, rest, hyphen := strings.Cut(name, "-")
	for _, part := range []string{first, rest} {
		if part == "." || part == ".." || part == "" && hyphen {
			return "leads to no route of the guild: " + quoted(name)
		}
	}
	return ""
}
