package settings

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// MeterName is the base name of the command that counts what a session costs: the hook's, with a verb.
const MeterName = hookName

const (
	// meterVerb is what the hook's binary is given to be the meter.
	meterVerb = "meter"
	// oldMeterName is the meter's name of earlier releases.
	oldMeterName = "heartbeat-meter"
	// refreshSeconds is how often the client runs the status line beside its own occasions. It has none while only a
	// subagent works: without it what that spends would be seen minutes later, and with 1 a person's own line, which may
	// well take a tenth of a second, would keep a tenth of a processor busy. A line that takes longer would never be shown,
	// since the client ends it when the next one is due.
	refreshSeconds = 5
	// maxLine is the longest line of the status line that is written, in bytes: the client passes it as one argument, and
	// Linux takes 131,072 bytes.
	maxLine = 120_000
	// fromBelow is the comment at the end of the innermost meter's line which says that the file had no status line, and
	// that the one behind --then is another file's. The shell skips it.
	fromBelow = "# shows the status line of another settings file"
)

// Meter is the status line that counts what a session costs: heartbeat-stop meter, which goes on as the line that is shown.
type Meter struct {
	// Command is the absolute path of heartbeat-stop.
	Command string
	// Below is the status line of the files that this one has precedence over, nil for none: see [Shown] and [Below]. It
	// is shown if the file has none of its own.
	Below *StatusLine
}

// StatusLine is the "statusLine" of a settings file. The client runs that of one file only.
type StatusLine struct {
	// Command is its line for /bin/sh, "" if it is not one of type command.
	Command string
	Line    int // 1-based
	// Meters are the meters that it runs, the outermost first.
	Meters []MeterUse
	// options are its other members, such as padding, that a file with precedence has to repeat.
	options []member
}

// MeterUse is a meter in a status line.
type MeterUse struct {
	Command string // as the line has it
	Inbox   string // absolute
	// Plain says that the line is as Install writes it, so that uninstalling takes the meter out. Otherwise it is a part of
	// a line that a person wrote.
	Plain bool
}

// Meter returns the meter of an inbox, or nil.
func (s *StatusLine) Meter(inbox string) *MeterUse {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.Meters, func(m MeterUse) bool { return compareInbox(m.Inbox, inbox) == equal })
	if i < 0 {
		return nil
	}
	return &s.Meters[i]
}

// statusLine reads the status line.
func (d *document) statusLine() *StatusLine {
	v := d.at("statusLine")
	if v == nil {
		return nil
	}
	s := &StatusLine{Line: d.line(v)}
	line, ok := d.statusCommand()
	if !ok {
		return s
	}
	s.Command = line
	c := chainOf(line)
	for _, l := range c.links {
		s.Meters = append(s.Meters, MeterUse{Command: l.words[0], Inbox: l.inbox, Plain: true})
	}
	if m, ok := c.byHand(); ok {
		s.Meters = append(s.Meters, m)
	}
	members, _ := decode(v).(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch members[name].(type) {
		case string, json.Number, bool:
			if name != "type" && name != "command" {
				s.options = append(s.options, member{name, members[name]})
			}
		}
	}
	return s
}

// statusCommand returns the line of a status line, and whether it is one of type command.
func (d *document) statusCommand() (string, bool) {
	kind, _ := d.textAt("statusLine", "type")
	line, ok := d.textAt("statusLine", "command")
	return line, ok && kind == "command"
}

// chain is the command of a status line: meters, each of which goes on as the next one, and the person's line at the end.
// The client runs one status line, so several inboxes in one file share it.
type chain struct {
	links []link // the outermost first
	line  string // what the last one goes on as
	lined bool   // there is one
	note  string // the comment of the last one
}

// link is one meter of a chain.
type link struct {
	words []string // the program and its arguments, but for --then
	inbox string
}

// chainOf reads the command of a status line.
func chainOf(line string) chain {
	c := chain{line: line, lined: true}
	for c.lined && c.note != fromBelow { // what follows that is in another file
		words, note, plain := shellWords(c.line)
		l := link{words: words[:min(1, len(words))]}
		then, lined := "", false
		for i := 1; i < len(words); i++ {
			value, joined := strings.CutPrefix(words[i], "--then=")
			switch {
			case joined:
				then, lined = value, true
			case words[i] == "--then" && i+1 < len(words):
				i++
				then, lined = words[i], true
			default:
				l.words = append(l.words, words[i])
			}
		}
		l.inbox, _ = inboxFlag(l.words)
		if !plain || len(c.line) > 2*maxLine || !runsMeter(l.words) || !filepath.IsAbs(l.inbox) {
			break
		}
		c.links, c.note, c.line, c.lined = append(c.links, l), note, then, lined
	}
	return c
}

// runsMeter reports whether the words begin with the meter, by its old name or its new one.
func runsMeter(words []string) bool {
	if len(words) == 0 {
		return false
	}
	base := filepath.Base(words[0])
	return base == oldMeterName || base == hookName && len(words) > 1 && words[1] == meterVerb
}

// byHand returns the meter that a person's line at the end of a chain seems to run.
func (c chain) byHand() (MeterUse, bool) {
	if !c.personal() {
		return MeterUse{}, false
	}
	words, _, _ := shellWords(c.line)
	for i := range words {
		if runsMeter(words[i:]) {
			inbox, ok := inboxFlag(words[i+1:])
			return MeterUse{Command: words[i], Inbox: inbox}, ok
		}
	}
	return MeterUse{}, false
}

// personal reports whether the line at the end is one that the file had before.
func (c chain) personal() bool { return c.lined && c.note != fromBelow }

// String is the command of the status line.
func (c chain) String() string {
	line, lined := c.line, c.lined
	for i, l := range slices.Backward(c.links) {
		text := spelled(l.words)
		if lined {
			text += " --then " + quoted(line)
		}
		if i == len(c.links)-1 && c.note != "" {
			text += " " + c.note
		}
		line, lined = text, true
	}
	return line
}

// find returns the index of the meter of an inbox, or -1.
func (c chain) find(inbox string) int {
	return slices.IndexFunc(c.links, func(l link) bool { return compareInbox(l.inbox, inbox) == equal })
}

// without returns the chain without the meters of an inbox.
func (c chain) without(inbox string) chain {
	c.links = slices.DeleteFunc(slices.Clone(c.links), func(l link) bool { return compareInbox(l.inbox, inbox) == equal })
	return c
}

// with returns the chain with one meter of the inbox.
func (c chain) with(words []string, inbox string) chain {
	l, at := link{append(words, "--inbox", inbox), inbox}, max(0, c.find(inbox))
	c = c.without(inbox)
	c.links = slices.Insert(c.links, min(at, len(c.links)), l)
	return c
}

// above returns the chain, which is all ours, before the status line of the files below. What counts beside an inbox of
// the chain already counts in there.
func (c chain) above(below *StatusLine) chain {
	c.line, c.lined, c.note = "", false, ""
	if below == nil || below.Command == "" {
		return c
	}
	shown := chainOf(below.Command)
	for _, l := range c.links {
		shown = shown.without(l.inbox)
	}
	if len(shown.links) > 0 || shown.lined {
		c.line, c.lined, c.note = shown.String(), true, fromBelow
	}
	return c
}

// wireMeter puts the meter before the status line, or makes one. A line that a person wrote around the meter of the inbox
// is left alone, and so is one that would get longer than an argument can be: it is worth more than ours.
func (e *editor) wireMeter() error {
	m := e.wiring.Meter
	if m == nil {
		return e.unwireMeter()
	}
	var c chain
	if e.at("statusLine") != nil {
		line, ok := e.statusCommand()
		if !ok {
			return nil
		}
		c = chainOf(line)
	}
	if hand, ok := c.byHand(); ok && c.find(e.inbox) < 0 && compareInbox(hand.Inbox, e.inbox) == equal {
		return nil
	}
	words := []string{m.Command}
	if filepath.Base(m.Command) == hookName {
		words = append(words, meterVerb)
	}
	c = c.with(words, e.inbox)
	var options []member
	if !c.personal() {
		c = c.above(m.Below)
		if c.lined {
			options = m.Below.options
		}
	}
	line := c.String()
	if len(line) > maxLine {
		return e.unwireMeter()
	}
	members := []member{{"type", "command"}, {"command", line}}
	for _, option := range append(slices.Clone(options), member{"refreshInterval", refreshSeconds}) {
		if e.at("statusLine", option.name) == nil && !slices.ContainsFunc(members, func(m member) bool { return m.name == option.name }) {
			members = append(members, option)
		}
	}
	return e.putAll(members, "statusLine")
}

// unwireMeter takes the meter of the inbox out of the status line.
func (e *editor) unwireMeter() error {
	line, ok := e.statusCommand()
	c := chainOf(cmp.Or(line, ""))
	if !ok || c.find(e.inbox) < 0 {
		return nil
	}
	personal := c.personal()
	if c = c.without(e.inbox); len(c.links) == 0 && !personal {
		e.drop(e.before, "statusLine")
		return nil
	}
	interval, _ := decode(e.at("statusLine", "refreshInterval")).(json.Number)
	if len(c.links) == 0 && interval == "5" && e.before.at("statusLine", "refreshInterval") == nil {
		e.drop(e.before, "statusLine", "refreshInterval")
	}
	return e.put(c.String(), "statusLine", "command")
}
