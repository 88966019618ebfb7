package settings

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// meterVerb is what the hook's binary was given to be the meter.
	meterVerb = "meter"
	// oldMeterName is the meter's name of releases before those.
	oldMeterName = "heartbeat-meter"
	// refreshSeconds is how often they had the client run the status line beside its own occasions.
	refreshSeconds = "5"
	// maxLine is the longest line of the status line that they wrote, in bytes.
	maxLine = 120_000
	// fromBelow is the comment at the end of the innermost meter's line which says that the file had no status line, and
	// that the one behind --then is another file's. The shell skips it.
	fromBelow = "# shows the status line of another settings file"
)

// statusCommand returns the line of a status line, and whether it is one of type command.
func (d *document) statusCommand() (string, bool) {
	kind, _ := d.textAt("statusLine", "type")
	line, ok := d.textAt("statusLine", "command")
	return line, ok && kind == "command"
}

// chain is the command of a status line as earlier releases wrote it: meters, which counted what a session costs, each of
// which goes on as the next one, and the person's line at the end. The client runs one status line, so several inboxes in
// one file share it.
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
	if len(c.links) == 0 && interval == refreshSeconds && e.before.at("statusLine", "refreshInterval") == nil {
		e.drop(e.before, "statusLine", "refreshInterval")
	}
	return e.put(c.String(), "statusLine", "command")
}
