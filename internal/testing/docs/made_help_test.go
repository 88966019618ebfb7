package docs

import (
	"maps"
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
	// preset is what a flag is if it is not given.
	preset = regexp.MustCompile(` \(default [^)]*\)$`)
	exits  = regexp.MustCompile(`(?s)\nExit status: (.*)$`)
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

// everywhere are flags that nearly every verb has, as docs/reference.md says.
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
	{"[runs](orchestrate.md)", []string{"--babysitter", "--breakpoints", "--code-changes", "--execute", "--max-iterations", "--on-unresolved", "--reject-reason", "--run", "--state-dir"}},
	{"[orphans](#orphans)", []string{"--on-orphan", "--max-attempts"}},
	{"[being told](operate.md#being-told)", []string{"--notify", "--notify-drained"}},
}

// ofRuns are verbs that another page is about.
var ofRuns = []string{"run", "orchestrate", "result", "breakpoint"}

// verbs lists a command's verbs by their groups, with their flags. Those with the same flags stand together.
func (m maker) verbs(command string) string {
	hook := m.flagsOf("heartbeat-stop")
	var order []string
	with := map[string][]string{}
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
		if flags = append(flags, links...); slices.Contains(ofRuns, words[1]) {
			flags = []string{"[runs](orchestrate.md)"}
		}
		said := strings.Join(flags, ", ")
		if with[said] == nil {
			order = append(order, said)
		}
		with[said] = append(with[said], path)
		for _, verb := range below {
			show(verb, append(slices.Clone(words), verb.name)...)
		}
	}
	for _, verb := range m.beneath(command) {
		if !slices.Contains([]string{"launch", "host", "nats", "hook"}, verb.name) {
			show(verb, command, verb.name)
		}
	}
	var lines []string
	for _, said := range order {
		lines = append(lines, strings.TrimSuffix(spans(with[said])+": "+said, ": "))
	}
	return list(lines)
}

// flags lists a command's flags, without what its help says aside.
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
		all = append(all, "`"+f.name+"`: "+prose(aside.ReplaceAllString(f.what, "")+preset.FindString(f.what)))
	}
	return list(all)
}

// mayBe is what an operator may do to a file: the end of what a manual page says of it.
var mayBe = regexp.MustCompile(`; (?:you may (change or remove|remove)|(rotate)) it(?: as you like)?$`)

// files lists what the manual pages of the hook and of the launcher say of the files beside an inbox, and first what
// an operator may do to them.
func (m maker) files() string {
	var all, first []string
	may := map[string][]string{}
	for _, f := range append(hook.Page().Files, launch.Page().Files...) {
		if slices.ContainsFunc(all, func(has string) bool { return strings.HasPrefix(has, "`"+f.Name+"`") }) {
			continue
		}
		all = append(all, "`"+f.Name+"`: "+prose(mayBe.ReplaceAllString(f.What, "")))
		if found := mayBe.FindStringSubmatch(f.What); found != nil {
			what := "you may " + found[1] + found[2]
			may[what] = append(may[what], f.Name)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(may)) {
		slices.Sort(may[what])
		first = append(first, what+": "+spans(may[what]))
	}
	slices.Sort(all)
	return list(append(first, all...))
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
