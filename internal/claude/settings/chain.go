package settings

import (
	"path/filepath"
	"slices"
	"strings"
)

// MeterName is the base name of the command that counts what a session costs.
const MeterName = "heartbeat-meter"

// Comments at the end of the innermost meter's line. The shell skips them, and Uninstall goes by them.
const (
	// fromBelow says that the file had no status line, and that the one behind --then is another file's.
	fromBelow = "# shows the status line of another settings file"
	// keptRefresh says that the person's status line had a refreshInterval.
	keptRefresh = "# refreshInterval was there before"
)

// maxLine is the longest line of the status line that is written, in bytes: the client passes it as one argument, and
// Linux takes 131,072 bytes.
const maxLine = 120_000

// maxSpelling is the longest JSON spelling of such a line.
const maxSpelling = 6 * maxLine

// chain is the command of a status line, in its JSON spelling: meters, each of which goes on as the next one, and the
// person's line at the end.
type chain struct {
	links []link // the outermost first
	line  string // what the last one goes on as
	lined bool   // there is one
}

// link is one meter of a chain.
type link struct {
	words   []string // spellings: the program and its arguments, but for --then
	then    string   // the spelling of what it goes on as
	goesOn  bool     // there is one
	comment string
}

// chainOf reads the command of a status line. name is the base name of another meter, or "".
func chainOf(line, name string) chain {
	c := chain{line: line, lined: true}
	for c.lined {
		l, ok := linkOf(c.line, name)
		if !ok {
			break
		}
		c.links = append(c.links, l)
		c.line, c.lined = l.then, l.goesOn
		if l.comment == fromBelow {
			break // what follows is in another file
		}
	}
	return c
}

// linkOf reads a line that is a meter's alone.
func linkOf(line, name string) (link, bool) {
	if len(line) > maxSpelling {
		return link{}, false
	}
	words, comment, simple := simpleWords(line)
	if !simple || len(words) == 0 || !isMeter(meant(words[0]), name) {
		return link{}, false
	}
	l := link{comment: comment}
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "--then" && i+1 < len(words):
			i++
			l.then, l.goesOn = words[i], true
		case strings.HasPrefix(words[i], "--then="):
			l.then, l.goesOn = strings.TrimPrefix(words[i], "--then="), true
		default:
			l.words = append(l.words, words[i])
		}
	}
	return l, filepath.IsAbs(l.inbox())
}

func isMeter(path, name string) bool {
	base := filepath.Base(path)
	return base == MeterName || name != "" && base == name
}

// inbox returns the inbox beside which the meter counts, or "".
func (l link) inbox() string {
	var args []string
	for _, w := range l.words[1:] {
		args = append(args, meant(w))
	}
	inbox, _ := inboxFlag(args)
	return inbox
}

// spell returns the command of the status line.
func (c chain) spell() string {
	line, lined := c.line, c.lined
	for _, l := range slices.Backward(c.links) {
		var words []string
		for _, w := range l.words {
			words = append(words, worded(w))
		}
		if lined {
			words = append(words, "--then", quoted(line))
		}
		if l.comment != "" {
			words = append(words, l.comment)
		}
		line, lined = strings.Join(words, " "), true
	}
	return line
}

// note returns the comment that says what was in the file before all meters.
func (c chain) note() string {
	if len(c.links) == 0 {
		return ""
	}
	return c.links[len(c.links)-1].comment
}

// personal reports whether the line at the end is one that the file had before.
func (c chain) personal() bool { return c.lined && c.note() != fromBelow }

// find returns the index of the meter of an inbox, or -1.
func (c chain) find(inbox string) int {
	return slices.IndexFunc(c.links, func(l link) bool { return compareInbox(l.inbox(), inbox) == same })
}

// without returns the chain without the meters of an inbox.
func (c chain) without(inbox string) chain {
	note := c.note()
	c.links = slices.DeleteFunc(slices.Clone(c.links), func(l link) bool { return compareInbox(l.inbox(), inbox) == same })
	if n := len(c.links); n > 0 {
		c.links[n-1].comment = note
	}
	return c
}

// with returns the chain with one meter of the inbox, of that path.
func (c chain) with(path, inbox, note string) chain {
	first := c.find(inbox)
	if first < 0 {
		l := link{words: []string{spelling(path), "--inbox", spelling(inbox)}}
		if len(c.links) == 0 {
			l.comment = note
		}
		c.links = slices.Insert(slices.Clone(c.links), 0, l)
		return c
	}
	note = c.note()
	l := c.links[first]
	if meant(l.words[0]) != path || len(l.words) != 3 || filepath.Clean(l.inbox()) != filepath.Clean(inbox) {
		l.words = []string{spelling(path), "--inbox", spelling(inbox)}
	}
	var links []link
	for i, other := range c.links {
		switch {
		case i == first:
			links = append(links, l)
		case compareInbox(other.inbox(), inbox) != same:
			links = append(links, other)
		}
	}
	links[len(links)-1].comment = note
	c.links = links
	return c
}
