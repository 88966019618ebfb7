package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/money/price"
)

const maxToolName = 128 // as MCP allows

func (p *parser) tools() (tools []Tool) {
	all, _ := get[[]json.RawMessage](p, "tools", required)
	named := map[string]int{}
	for i, v := range all {
		path := fmt.Sprintf("tools[%d]", i)
		in := &parser{within: path + ".", problem: p.problem}
		p.read(path, v, &in.members)
		tool := in.tool()
		if first, twice := named[tool.Name]; twice {
			p.fail(path+".name", "is also that of tools[%d]: %s", first, tool.Name)
		}
		named[tool.Name] = i
		tools = append(tools, tool)
	}
	return tools
}

func (p *parser) tool() (t Tool) {
	var ok bool
	if t.Name, ok = get[string](p, "name", required); ok {
		if wrong := checkToolName(t.Name); wrong != "" {
			p.fail(p.within+"name", "%s", wrong)
		}
	}
	t.Description, _ = get[string](p, "description", optional)
	if t.Params, ok = get[json.RawMessage](p, "params", optional); !ok {
		t.Params = json.RawMessage("{}")
	}
	t.Idempotent, _ = get[bool](p, "idempotent", optional)
	if t.Method, ok = get[string](p, "method", optional); !ok {
		t.Method = "POST"
	}
	if !slices.Contains([]string{"GET", "POST", "DELETE"}, t.Method) {
		p.fail(p.within+"method", "must be GET, POST or DELETE, and is %s", quoted(t.Method))
	}
	return t
}

// checkToolName returns what is wrong with a name: MCP does not allow it, or it leads to no route.
func checkToolName(name string) string {
	if name == "" || len(name) > maxToolName {
		return "must have 1 to " + strconv.Itoa(maxToolName) + " characters, and has " + strconv.Itoa(len(name))
	}
	if strings.Trim(name, plain+".") != "" {
		return "must consist of letters, digits, '_', '.' and '-', and is " + quoted(name)
	}
	for part := range strings.SplitSeq(Tool{Name: name}.route(), "/") {
		if part == "" || part == "." || part == ".." { // such a part does not reach the guild
			return "leads to no route of the guild: " + quoted(name)
		}
	}
	return ""
}

// Route returns the path at which a guild serves the tool, split at its first hyphen: /api/writ/link-kinds.
func (t Tool) Route() string { return "/api/" + t.route() }

func (t Tool) route() string { return strings.Replace(t.Name, "-", "/", 1) }

// limits reads what may be spent: an object whose members have the names and spelling of the host's
// flags. Numbers may be JSON numbers.
func (p *parser) limits() (l price.Plan) {
	given, _ := get[map[string]json.RawMessage](p, "limits", optional)
	flags := cli.NewFlags("limits")
	cli.AddLimits(flags, &l)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		path, flag := member("limits", name), flags.Lookup(name)
		if flag == nil { // a misspelled limit would not hold
			p.fail(path, "is no limit: they are %s", strings.Join(offered(flags), ", "))
			continue
		}
		text := string(given[name])
		switch kind(given[name]) {
		case "null":
			continue
		case "a number":
		case "a string":
			if p.read(path, given[name], &text); text == "" {
				p.fail(path, "must not be empty: leave it out for no limit")
			}
		default:
			p.fail(path, "must be a number or a string, and is %s", kind(given[name]))
		}
		if err := flag.Value.Set(text); err != nil {
			p.fail(path, "cannot be used: %v", err)
		}
	}
	return l
}

func offered(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
