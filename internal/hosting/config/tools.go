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
	if !ok {
		return t, false
	}
	has := func(name string) (json.RawMessage, bool) {
		v, there := members[name]
		return v, there && kind(v) != "null"
	}
	v, there := has("name")
	if !there {
		p.fail(path+".name", "is missing")
		return t, false
	}
	if t.Name, ok = p.stringAt(path+".name", v); !ok {
		return t, false
	}
	if wrong := checkToolName(t.Name); wrong != "" {
		p.fail(path+".name", "%s", wrong)
		return t, false
	}
	if v, there := has("description"); there {
		if t.Description, ok = p.stringAt(path+".description", v); !ok {
			return t, false
		}
	}
	t.Params = json.RawMessage("{}")
	if v, there := has("params"); there {
		if _, ok := p.objectAt(path+".params", v); !ok {
			return t, false
		}
		t.Params = v
	}
	if v, there := has("idempotent"); there {
		if kind(v) != "a boolean" {
			p.fail(path+".idempotent", "must be true or false, and is %s", kind(v))
			return t, false
		}
		t.Idempotent = v[0] == 't'
	}
	t.Method = "POST"
	if v, there := has("method"); there {
		if t.Method, ok = p.stringAt(path+".method", v); !ok {
			return t, false
		}
	}
	switch t.Method {
	case "GET", "POST", "DELETE":
		return t, true
	}
	p.fail(path+".method", "must be GET, POST or DELETE, and is %s", quoted(t.Method))
	return t, false
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
