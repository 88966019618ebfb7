package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/money/budget"
)

// maxToolName is the longest tool name that MCP allows.
const maxToolName = 128

func (p *parser) tools() (tools []Tool) {
	value, ok := p.need("tools")
	if !ok {
		return nil
	}
	_, all, _ := p.partsAt("an array", "tools", value)
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
	members, _, ok := p.partsAt("an object", path, value)
	if !ok {
		return t, false
	}
	in := &parser{members: members, within: path + "."}
	if t.Name, ok = in.text("name"); ok {
		if wrong := checkToolName(t.Name); wrong != "" {
			in.fail(in.within+"name", "%s", wrong)
		}
	}
	t.Description, _ = in.textIfAny("description")
	if t.Params = in.objectIfAny("params"); t.Params == nil {
		t.Params = json.RawMessage("{}")
	}
	t.Idempotent = in.flag("idempotent")
	t.Method = "POST"
	if v := in.take("method"); v != nil {
		if t.Method, ok = in.stringAt(in.within+"method", v); ok && !slices.Contains([]string{"GET", "POST", "DELETE"}, t.Method) {
			in.fail(in.within+"method", "must be GET, POST or DELETE, and is %s", quoted(t.Method))
		}
	}
	p.problem = cmp.Or(p.problem, in.problem)
	return t, in.problem == nil
}

// checkToolName allows what MCP allows, except names that lead to no route.
func checkToolName(name string) string {
	if name == "" || len(name) > maxToolName {
		return "must have 1 to " + strconv.Itoa(maxToolName) + " characters, and has " + strconv.Itoa(len(name))
	}
	if strings.Trim(name, plain+".") != "" {
		return "must consist of letters, digits, '_', '.' and '-', and is " + quoted(name)
	}
	for part := range strings.SplitSeq(Tool{Name: name}.route(), "/") {
		if part == "" || part == "." || part == ".." { // such a part gets lost on the way
			return "leads to no route of the guild: " + quoted(name)
		}
	}
	return ""
}

// Route is where a guild serves the tool. The name is split at its first hyphen: writ-link-kinds is
// at /api/writ/link-kinds.
func (t Tool) Route() string { return "/api/" + t.route() }

func (t Tool) route() string { return strings.Replace(t.Name, "-", "/", 1) }

// limits reads what may be spent: an object whose members are named and parsed like the host's
// flags. Numbers may be JSON numbers.
func (p *parser) limits() (l budget.Plan) {
	const name = "limits"
	value := p.take(name)
	if value == nil {
		return l
	}
	members, _, _ := p.partsAt("an object", name, value)
	var all budget.Plan
	flags := cli.NewFlags(name)
	cli.AddLimits(flags, &all)
	var known, offered []string
	flags.VisitAll(func(f *pflag.Flag) {
		if known = append(known, f.Name); !f.Hidden {
			offered = append(offered, f.Name)
		}
	})
	for _, flag := range known {
		v := members[flag]
		delete(members, flag)
		path := member(name, flag)
		if text, ok := p.limitAt(path, v); ok && text != "" {
			if err := flags.Lookup(flag).Value.Set(text); err != nil {
				p.fail(path, "cannot be used: %v", err)
			}
		}
	}
	for _, other := range slices.Sorted(maps.Keys(members)) { // a misspelled limit would not hold
		p.fail(member(name, other), "is no limit: they are %s", strings.Join(offered, ", "))
	}
	if p.problem != nil {
		return l
	}
	return all
}

// limitAt returns the text of a limit, "" for none.
func (p *parser) limitAt(path string, value json.RawMessage) (text string, ok bool) {
	switch kind(value) {
	case "nothing", "null":
		return "", true
	case "a number":
		return string(value), true
	case "a string":
		if text, ok = p.stringAt(path, value); ok && text == "" {
			p.fail(path, "must not be empty: leave it out for no limit")
		}
		return text, ok
	}
	p.fail(path, "must be a number or a string, and is %s", kind(value))
	return "", false
}
