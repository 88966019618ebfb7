package settings

import (
	"path/filepath"
	"slices"
)

// refreshSeconds is how often the client runs the status line beside its own occasions. It has none while only a subagent
// works: without it what that spends would be seen minutes later, and with 1 a person's own line, which may well take a
// tenth of a second, would keep a tenth of a processor busy. A line that takes longer would never be shown, since the
// client ends it when the next one is due.
const refreshSeconds = 5

// Meter is the status line that counts what a session costs: heartbeat-meter, which goes on as the line that is shown.
type Meter struct {
	// Command is the absolute path of heartbeat-meter.
	Command string
	// Below is the status line of the files that this one has precedence over, nil for none: see [Shown] and [Below]. It
	// is shown if the file has none of its own.
	Below *StatusLine
}

// meterName returns the base name of the meter's command, or "".
func (e *editor) meterName() string {
	if e.wiring.Meter == nil {
		return ""
	}
	return filepath.Base(e.wiring.Meter.Command)
}

// status is the status line of a file with what an edit needs.
type status struct {
	document
	chain   chain
	at      place
	members box
}

// status returns the status line. It is nil if there is none, or none of type command; there says which.
func (e *editor) status() (s *status, there bool, err error) {
	if len(e.text) == 0 {
		return nil, false, nil
	}
	d, err := parse(e.text)
	if err != nil {
		return nil, false, err
	}
	top := d.top()
	i := top.find("statusLine")
	if i < 0 {
		return nil, false, nil
	}
	b, _ := d.box(top.items[i].value)
	line, ok := commandOf(b)
	if !ok {
		return nil, true, nil
	}
	return &status{document: d, at: place{top, i}, members: b, chain: chainOf(line, e.meterName())}, true, nil
}

// wireMeter puts the meter before the status line, or makes one.
func (e *editor) wireMeter() error {
	if e.wiring.Meter == nil {
		return e.unwireMeter()
	}
	s, there, err := e.status()
	if err != nil {
		return err
	}
	if !there {
		return e.addStatus()
	}
	if s == nil || len(s.chain.line) > maxSpelling {
		return nil
	}
	if m, ok := byHand(s.chain); ok && s.chain.find(e.inbox) < 0 && compareInbox(m.Inbox, e.inbox) == same {
		return nil
	}
	note := ""
	if s.members.find("refreshInterval") >= 0 {
		note = keptRefresh
	}
	c := s.chain.with(e.wiring.Meter.Command, e.inbox, note)
	if !c.personal() {
		c = e.before(c)
	}
	line := c.spell()
	if len(meant(line)) > maxLine {
		return e.unwireMeter()
	}
	if line != s.chain.spell() {
		e.text = s.replaceCommand(line)
	}
	return e.setOptions(!c.personal())
}

// addStatus adds a status line of our own.
func (e *editor) addStatus() error {
	if below := e.wiring.Meter.Below; below != nil && len(below.Command) > maxLine {
		return nil
	}
	c := e.before(chain{}.with(e.wiring.Meter.Command, e.inbox, ""))
	line := c.spell()
	if len(meant(line)) > maxLine {
		return nil // the person's line is worth more than ours
	}
	d, err := parse(e.text)
	if err != nil {
		return err
	}
	value := []member{{"type", "command"}, {"command", rawJSON(`"` + line + `"`)}}
	e.text = d.insert(d.top(), member{"statusLine", append(value, e.options(true)...)})
	return nil
}

// before returns the chain, which is all ours, before the status line of the files below. What counts beside an inbox of
// the chain already counts in there.
func (e *editor) before(c chain) chain {
	last := &c.links[len(c.links)-1]
	c.line, c.lined, last.comment = "", false, ""
	below := e.wiring.Meter.Below
	if below == nil || below.Command == "" {
		return c
	}
	shown := chainOf(spelling(below.Command), e.meterName())
	for _, l := range c.links {
		shown = shown.without(l.inbox())
	}
	if len(shown.links) > 0 || shown.lined {
		c.line, c.lined, last.comment = shown.spell(), true, fromBelow
	}
	return c
}

// options returns the members of the status line beside its command. all says that it is ours, and shows one from below.
func (e *editor) options(all bool) []member {
	var options []member
	if below := e.wiring.Meter.Below; all && below != nil && below.Command != "" {
		options = slices.Clone(below.options)
	}
	if !slices.ContainsFunc(options, func(m member) bool { return m.name == "refreshInterval" }) {
		options = append(options, member{"refreshInterval", refreshSeconds})
	}
	return options
}

// setOptions adds the members that are missing.
func (e *editor) setOptions(all bool) error {
	for _, want := range e.options(all) {
		s, _, err := e.status()
		if err != nil {
			return err
		}
		if s.members.find(want.name) < 0 {
			e.text = s.insert(s.members, want)
		}
	}
	return nil
}

// replaceCommand returns the text with another command, given by its spelling.
func (s *status) replaceCommand(line string) []byte {
	have := s.members.items[s.members.find("command")].value
	return splice(s.text, edit{at: have.StartOffset, cut: have.EndOffset - have.StartOffset, text: `"` + line + `"`})
}

// unwireMeter takes the meter of the inbox out of the status line.
func (e *editor) unwireMeter() error {
	s, _, err := e.status()
	if err != nil || s == nil || s.chain.find(e.inbox) < 0 {
		return err
	}
	c := s.chain.without(e.inbox)
	switch {
	case len(c.links) > 0:
		e.text = s.replaceCommand(c.spell())
		return nil
	case !s.chain.personal():
		e.text = s.remove([]place{s.at})
		return nil
	}
	e.text = s.replaceCommand(c.line)
	if s.chain.note() == keptRefresh {
		return nil
	}
	if s, _, err = e.status(); err != nil || s == nil {
		return err
	}
	if i := s.members.find("refreshInterval"); i >= 0 && decode(s.members.items[i].value) == any(float64(refreshSeconds)) {
		e.text = splice(s.text, s.cut(place{s.members, i})...)
	}
	return nil
}
