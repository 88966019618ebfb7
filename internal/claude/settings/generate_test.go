package settings_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes random settings files with random formatting.
type generator struct {
	*rand.Rand
	eol, unit      string
	lines, colon   bool // each item on its own line; a space after colons and commas
	comments, tail bool // comments; trailing commas
	sloppy         bool // changes the formatting sometimes
}

// generate returns a settings file without heartbeat's parts, but perhaps with a block cap of "0".
func generate(r *rand.Rand) string {
	g := &generator{
		Rand: r, eol: pick(r, "\n", "\n", "\r\n"), unit: pick(r, "  ", "    ", "\t", ""),
		lines: r.IntN(4) > 0, colon: r.IntN(3) > 0,
		comments: r.IntN(4) == 0, tail: r.IntN(5) == 0, sloppy: r.IntN(4) == 0,
	}
	if r.IntN(20) == 0 {
		return ""
	}
	return pick(r, "", "", "", "\ufeff") + g.comment("") + g.top() + g.comment("") + pick(r, "", g.eol, g.eol+g.eol, " ")
}

func pick(r *rand.Rand, choices ...string) string { return choices[r.IntN(len(choices))] }

func (g *generator) top() string {
	var members []string
	if g.IntN(2) == 0 {
		members = append(members, g.member("token", `"opus"`))
	}
	for range g.IntN(3) {
		members = append(members, g.member(pick(g.Rand, "a", "b", "a", `\u0061`), g.value(1)))
	}
	if g.IntN(3) > 0 {
		members = append(members, g.member(pick(g.Rand, "hooks", `h\u006foks`), g.hooks()))
	}
	if g.IntN(3) > 0 {
		members = append(members, g.member("env", g.env()))
	}
	if g.IntN(3) == 0 {
		members = append(members, g.member("statusLine", g.statusLine()))
	}
	if g.IntN(3) == 0 {
		members = append(members, g.member("enabledMcpjsonServers", g.names("heartbeat")))
	}
	if g.IntN(3) == 0 {
		members = append(members, g.member("permissions", g.bracket("{", "}", 1, []string{g.member("allow", g.names("mcp__heartbeat"))})))
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return g.bracket("{", "}", 0, members)
}

func (g *generator) statusLine() string {
	if g.IntN(6) == 0 {
		return g.value(2)
	}
	command := pick(g.Rand, `"line"`, `"it's \u0027"`, `"a \\\" $b\n'\\\\'' #c"`, `"\ud83d\ude00 \/'"`, `""`, `7`)
	members := []string{g.member("type", pick(g.Rand, `"command"`, `"command"`, `"static"`)), g.member("command", command)}
	if g.IntN(3) == 0 {
		members = append(members, g.member("refreshInterval", pick(g.Rand, "5", "1", `"x"`)))
	}
	if g.IntN(2) == 0 {
		members = append(members, g.member("padding", "2"))
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return g.bracket("{", "}", 1, members)
}

func (g *generator) hooks() string {
	var members []string
	for _, event := range []string{"Stop", "StopFailure", "PreToolUse", "SessionEnd", "Notification", "Stop"} {
		if g.IntN(3) == 0 {
			members = append(members, g.member(event, g.groups()))
		}
	}
	return g.bracket("{", "}", 1, members)
}

func (g *generator) groups() string {
	var groups []string
	for range g.IntN(3) {
		hook := g.bracket("{", "}", 5, []string{g.member("type", `"command"`), g.member("command", `"say done"`)})
		list := g.bracket("[", "]", 4, []string{hook})
		groups = append(groups, g.bracket("{", "}", 3, []string{g.member("matcher", `""`), g.member("hooks", list)}))
	}
	return g.bracket("[", "]", 2, groups)
}

func (g *generator) env() string {
	var members []string
	for range g.IntN(3) {
		members = append(members, g.member(pick(g.Rand, "A", "B", "PATH"), `"1\u00e9"`))
	}
	if g.IntN(3) == 0 {
		members = append(members, g.member("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", pick(g.Rand, `"0"`, `"\u0030"`)))
	}
	return g.bracket("{", "}", 1, members)
}

func (g *generator) value(depth int) string {
	if depth > 4 || g.IntN(3) > 0 {
		return pick(g.Rand, "1", "1.0", "1E+400", "-0", "null", "true", `"x"`, `"\ud800\/<&>"`, `"{[,// /*"`)
	}
	var items []string
	object := g.IntN(2) == 0
	for i := range g.IntN(3) {
		if object {
			items = append(items, g.member(fmt.Sprint("k", i), g.value(depth+1)))
			continue
		}
		items = append(items, g.value(depth+1))
	}
	if object {
		return g.bracket("{", "}", depth, items)
	}
	return g.bracket("[", "]", depth, items)
}

func (g *generator) member(name, value string) string {
	colon := ":"
	if g.colon {
		colon = ": "
	}
	return `"` + name + `"` + colon + g.comment(" ") + value
}

func (g *generator) bracket(open, end string, depth int, items []string) string {
	lines := g.lines
	if g.sloppy && g.IntN(4) == 0 {
		lines = !lines
	}
	outer, inner := g.eol+strings.Repeat(g.unit, depth), g.eol+strings.Repeat(g.unit, depth+1)
	if !lines {
		outer, inner = "", ""
	}
	if len(items) == 0 {
		return open + g.comment("") + pick(g.Rand, "", "", " ", outer, g.eol, g.eol+g.eol) + g.comment("") + end
	}
	var b strings.Builder
	b.WriteString(open)
	for i, item := range items {
		b.WriteString(g.comment(" ") + inner)
		if i > 0 && !lines && g.colon {
			b.WriteByte(' ')
		}
		b.WriteString(item + g.comment(" "))
		if i < len(items)-1 || g.tail {
			b.WriteString(",")
		}
	}
	return b.String() + g.comment(" ") + outer + end
}

// comment sometimes returns a comment, which may contain what looks like JSON.
func (g *generator) comment(before string) string {
	if !g.comments || g.IntN(5) > 0 {
		return ""
	}
	return before + pick(g.Rand, "/* c */", "/*/ c **/", "/* see http://x, [ */", "// c {\"x\": "+g.eol, "// c  \t"+g.eol+g.eol, "/* a"+g.eol+" b */ ")
}

// names returns an array of strings, sometimes with the given one.
func (g *generator) names(one string) string {
	var items []string
	for range g.IntN(3) {
		items = append(items, pick(g.Rand, `"a"`, `"Bash(ls:*)"`, "1"))
	}
	if g.IntN(3) == 0 {
		items = append(items, `"`+one+`"`)
	}
	return g.bracket("[", "]", 2, items)
}
