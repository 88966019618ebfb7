package docs

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/command/metrics"
	"heartbeat/internal/hook"
	"heartbeat/internal/launch"
)

var (
	aside = regexp.MustCompile(` \([^)]*\)`)
	exits = regexp.MustCompile(`(?s)\nExit status: (.*)$`)
	// clause begins with an exit status: "3 it became a dead letter".
	clause = regexp.MustCompile(`(?:^|[;,:.] )(?:and )?(?:with --wait[:,] )?(\d+(?:\+n)?) `)
)

// item is a name in a list of a help, and what the list says of it.
type item struct{ name, what string }

// items are the rows of the lists below the titles that match, the lines of each row as one.
func items(help string, title *regexp.Regexp) (all []item) {
	inside := false
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		switch deep := len(line) - len(strings.TrimLeft(line, " ")); {
		case line == "":
		case deep == 0:
			inside = title.MatchString(line)
		case inside && deep > 10:
			all[len(all)-1].what = strings.TrimSpace(all[len(all)-1].what + " " + strings.TrimSpace(line))
		case inside:
			gap := " "
			if strings.Contains(line, "--") { // behind a flag stands what it takes
				gap = "  "
			}
			name, what, _ := strings.Cut(strings.TrimSpace(line), gap)
			all = append(all, item{name, strings.TrimSpace(what)})
		}
	}
	return all
}

var (
	verbTitle = regexp.MustCompile(`^(?:Send|Steer|Recover|Babysitter|Set|Other|About|Verbs|Host|Look|Tidy|Begin|Work).*:$`)
	flagTitle = regexp.MustCompile(`^Flags.*:$`)
	flagHead  = regexp.MustCompile(`^(?:-\w, )?(--[a-z-]+)`)
)

// beneath are the verbs that a help lists.
func (m maker) beneath(words ...string) []item {
	help := m.helps.of(m.t, words...)
	require.NotEmpty(m.t, help, words)
	return items(help, verbTitle)
}

// flagsOf are the names of a verb's flags.
func (m maker) flagsOf(words ...string) (all []string) {
	for _, f := range items(m.helps.of(m.t, words...), flagTitle) {
		all = append(all, flagHead.FindStringSubmatch(f.name)[1])
	}
	return all
}

// everywhere are flags that nearly every verb has.
var everywhere = []string{"--help", "--version", "--inbox", "--json", "--color"}

// common are flags that several verbs have, and a link to what they do.
type common struct {
	link  string
	flags []string
}

var together = []common{
	{"[checks](check.md)", []string{"--check", "--check-named", "--check-none", "--check-timeout", "--check-tries"}},
	{"[limits](cost.md#limits)", []string{"--max-cost-per-day", "--max-cost-per-entry", "--max-time-per-entry", "--max-tokens-per-day", "--max-tokens-per-entry"}},
	{"[limits](cost.md#limits)", []string{"--max-cost", "--max-time", "--max-tokens"}},
	{"[runs](orchestrate.md)", []string{"--babysitter", "--breakpoints", "--code-changes", "--execute", "--max-iterations", "--on-unresolved", "--reject-reason"}},
}

// verbs lists a command's verbs by their groups, each with its flags.
func (m maker) verbs(command string) string {
	hook := m.flagsOf("heartbeat-stop")
	var lines []string
	without := map[string][]string{}
	var show func(of item, words ...string)
	show = func(of item, words ...string) {
		all, path, below := m.flagsOf(words...), strings.Join(words[1:], " "), m.beneath(words...)
		if path == "completion" { // its verbs are shells
			below = nil
		}
		if len(below) > 0 && len(all) == 1 { // a verb of it has to be named
			for _, verb := range below {
				show(verb, append(slices.Clone(words), verb.name)...)
			}
			return
		}
		for _, f := range []string{"--inbox", "--json"} {
			if !slices.Contains(all, f) {
				without[f] = append(without[f], path)
			}
		}
		var flags, links []string
		for _, group := range append([]common{{"the [hook's](#flags-of-the-hook)", hook}}, together...) {
			in := func(f string) bool { return slices.Contains(group.flags, f) && !slices.Contains(everywhere, f) }
			if n := len(slices.DeleteFunc(slices.Clone(all), func(f string) bool { return !in(f) })); n > 2 && n > len(group.flags)/2 {
				all, links = slices.DeleteFunc(all, in), append(links, group.link)
			}
		}
		for _, f := range all {
			if !slices.Contains(everywhere, f) {
				flags = append(flags, "`"+f+"`")
			}
		}
		line := "`" + path + "`"
		if flags = append(flags, links...); len(flags) > 0 {
			line += ": " + strings.Join(flags, ", ")
		}
		lines = append(lines, line)
		for _, verb := range below {
			show(verb, append(slices.Clone(words), verb.name)...)
		}
	}
	for _, verb := range m.beneath(command) {
		if !slices.Contains([]string{"launch", "host", "nats", "hook"}, verb.name) {
			show(verb, command, verb.name)
		}
	}
	return list(append(lines, "without `--inbox`: "+spans(without["--inbox"]), "without `--json`: "+spans(without["--json"])))
}

// flags lists a command's flags.
func (m maker) flags(command string) string {
	var all, said []string
	for _, f := range items(m.helps.of(m.t, command), flagTitle) {
		name := flagHead.FindStringSubmatch(f.name)[1]
		if name == "--help" || name == "--version" {
			continue
		}
		group := slices.IndexFunc(together, func(of common) bool { return slices.Contains(of.flags, name) })
		if group >= 0 {
			if link := together[group].link; !slices.Contains(said, link) {
				said = append(said, link)
				all = append(all, spans(together[group].flags)+": "+link)
			}
			continue
		}
		all = append(all, "`"+f.name+"`: "+prose(f.what))
	}
	return list(all)
}

// files lists what the manual pages of the hook and of the launcher say of the files beside an inbox.
func (m maker) files() string {
	var all []string
	for _, f := range append(hook.Page().Files, launch.Page().Files...) {
		line := "`" + f.Name + "`: " + prose(f.What)
		if !slices.ContainsFunc(all, func(has string) bool { return strings.HasPrefix(has, "`"+f.Name+"`") }) {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return list(all)
}

// metrics lists the figures by what they are about.
func (m maker) metrics() string {
	const dir = "internal/command/metrics"
	var all []string
	for i := range reflect.TypeFor[metrics.Figures]().NumField() {
		f := reflect.TypeFor[metrics.Figures]().Field(i)
		if _, is := f.Tag.Lookup("help"); is {
			all = append(all, spans(figuresOf(f)))
		} else if f.Anonymous {
			about, _, _ := strings.Cut(m.source.of(m.t, dir).docs[f.Name], ". ")
			all = append(all, prose(subject.ReplaceAllString(about, ""))+": "+spans(figuresOf(f)))
		}
	}
	return list(all)
}

// figuresOf are the names of a field's metrics.
func figuresOf(f reflect.StructField) (names []string) {
	if _, is := f.Tag.Lookup("help"); is {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return []string{name}
	}
	of := f.Type
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	for i := range of.NumField() {
		names = append(names, figuresOf(of.Field(i))...)
	}
	return names
}

// statuses lists what the exit statuses from 2 on mean, with the verbs of a command that end so.
func (m maker) statuses(command string) string {
	type said struct {
		text  string
		verbs []string
	}
	by := map[int][]said{}
	note := func(status, text, verb string) {
		n, err := strconv.Atoi(strings.TrimSuffix(status, "+n"))
		require.NoError(m.t, err)
		at := slices.IndexFunc(by[n], func(s said) bool { return s.text == text })
		if at < 0 {
			at, by[n] = len(by[n]), append(by[n], said{text: text})
		}
		by[n][at].verbs = append(by[n][at].verbs, verb)
	}
	var look func(words ...string)
	look = func(words ...string) {
		help := m.helps.of(m.t, words...)
		if found := exits.FindStringSubmatch(help); found != nil {
			text := strings.Join(strings.Fields(found[1]), " ")
			ends := clause.FindAllStringSubmatchIndex(text, -1)
			for i, at := range ends {
				until := len(text)
				if i+1 < len(ends) {
					until = ends[i+1][0]
				}
				said, _, _ := strings.Cut(strings.TrimRight(text[at[1]:until], ".;,"), ". ")
				said = aside.ReplaceAllString(said, "")
				if status := text[at[2]:at[3]]; status != "0" && status != "1" {
					note(status, said, strings.Join(words[1:], " "))
				}
			}
		}
		if len(words) < 3 {
			for _, verb := range m.beneath(words...) {
				if slices.Contains([]string{"launch", "host", "nats"}, verb.name) { // they have lists of their own
					continue
				}
				look(append(slices.Clone(words), verb.name)...)
			}
		}
	}
	look(command)
	var items []string
	for _, n := range []int{2, 3, 75, 78, 124, 128} {
		var parts []string
		for _, s := range by[n] {
			parts = append(parts, spans(s.verbs)+": "+prose(s.text))
		}
		if len(parts) > 0 {
			name := strconv.Itoa(n)
			if n == 128 {
				name += "+n"
			}
			items = append(items, name+": "+strings.Join(parts, "; "))
		}
		delete(by, n)
	}
	require.Empty(m.t, by)
	return list(items)
}
