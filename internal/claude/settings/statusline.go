package settings

import (
	"path/filepath"
	"slices"

	"github.com/tailscale/hujson"

	"heartbeat/internal/disk"
)

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
	// Plain says that the line is as Install writes it, so that Uninstall takes the meter out. Otherwise it is a part of a
	// line that a person wrote.
	Plain bool
}

// Meter returns the meter of an inbox, or nil.
func (s *StatusLine) Meter(inbox string) *MeterUse {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.Meters, func(m MeterUse) bool { return compareInbox(m.Inbox, inbox) == same })
	if i < 0 {
		return nil
	}
	return &s.Meters[i]
}

// statusLine reads the status line.
func (d document) statusLine() *StatusLine {
	i := d.top().find("statusLine")
	if i < 0 {
		return nil
	}
	value := d.top().items[i].value
	s := &StatusLine{Line: d.line(value.StartOffset)}
	b, _ := d.box(value)
	line, ok := commandOf(b)
	if !ok {
		return s
	}
	s.Command = meant(line)
	c := chainOf(line, "")
	for _, l := range c.links {
		s.Meters = append(s.Meters, MeterUse{Command: meant(l.words[0]), Inbox: l.inbox(), Plain: true})
	}
	if m, ok := byHand(c); ok {
		s.Meters = append(s.Meters, m)
	}
	for _, it := range b.items {
		switch it.value.Value.(type) {
		case hujson.Literal:
			if it.name != "type" && it.name != "command" {
				s.options = append(s.options, member{it.name, rawJSON(spelled(it.value))})
			}
		}
	}
	return s
}

// rawJSON is a value as a file spells it.
type rawJSON string

// commandOf returns the spelling of a status line's command, and whether it is one of type command.
func commandOf(b box) (string, bool) {
	i, j := b.find("type"), b.find("command")
	if i < 0 || j < 0 || decode(b.items[i].value) != any("command") {
		return "", false
	}
	literal, ok := b.items[j].value.Value.(hujson.Literal)
	if !ok || literal.Kind() != '"' {
		return "", false
	}
	return string(literal[1 : len(literal)-1]), true
}

// byHand returns the meter that a person's line at the end of a chain seems to run.
func byHand(c chain) (MeterUse, bool) {
	if !c.lined || c.note() == fromBelow {
		return MeterUse{}, false
	}
	words := shellWords(meant(c.line))
	at := slices.IndexFunc(words, func(w string) bool { return filepath.Base(w) == MeterName })
	if at < 0 {
		return MeterUse{}, false
	}
	inbox, ok := inboxFlag(words[at+1:])
	return MeterUse{Command: words[at], Inbox: inbox}, ok
}

// Shown returns the status line that the client runs of those in the files, which come the weakest first, and the file
// that has it; nil if none has one. What the client does not load is skipped.
func Shown(files []File) (*StatusLine, File) {
	for _, f := range slices.Backward(files) {
		text, err := disk.ReadFile(f.Path, MaxFile)
		if err != nil {
			continue
		}
		content, err := Look(text, "")
		if err == nil && content.Lax == 0 && content.StatusLine != nil {
			return content.StatusLine, f
		}
	}
	return nil, File{}
}

// Below returns those of the files, which come the weakest first, that the one at path has precedence over. A path that is
// none of them is taken for one that the client gets with --settings.
func Below(files []File, path string) []File {
	i := slices.IndexFunc(files, func(f File) bool { return f.Managed || filepath.Clean(f.Path) == filepath.Clean(path) })
	if i < 0 {
		return files
	}
	return files[:i]
}
