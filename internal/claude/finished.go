package claude

import (
	"strings"

	"heartbeat/internal/flat"
)

// Finished reports whether the transcript shows that the text's turn ended: an answer, followed by the client's note
// that the hooks of a Stop ran and that none of them had the turn go on. A turn that a person or an error ended has no
// such note. reply is the answer's last text.
func (d Delivery) Finished() (reply string, finished bool) {
	r := d.reading()
	var e ending
	err := d.each(func(l *flat.Members, at int64) {
		e.begun = e.begun || l.Is("uuid") && r.answers(l)
		if e.take(l); l.Is("uuid") {
			r.take(l, at)
		}
	})
	return e.reply, err == nil && e.finished
}

// ending finds the end of a turn, line by line. A hook may have had the turn go on, and the client may have overridden
// that.
type ending struct {
	held, overridden      bool
	begun, over, finished bool // set begun once the lines are the turn's
	reply                 string
}

func (e *ending) take(l *flat.Members) {
	ends := e.shows(l)
	switch {
	case !e.begun || e.over || !l.Is("uuid"):
	case isAnswer(l):
		if text := textOf(l); text != "" {
			e.reply = text
		}
	case ends:
		e.over, e.finished = true, e.reply != ""
	case isTurn(l) && !isToolResult(l): // a prompt, or an error instead of an answer
		e.over = true
	}
}

func (e *ending) shows(l *flat.Members) bool {
	switch {
	case isAnswer(l):
		e.held, e.overridden = false, false
	case isOverride(l):
		e.overridden = true
		return e.held
	case isSummary(l):
		e.held = goesOn(l)
		return !e.held || e.overridden
	}
	return false
}

// textOf returns the text in a line of the model's, without its tool calls.
func textOf(l *flat.Members) string {
	var all []string
	for _, block := range l.Value("message").Get("content").Items() {
		if t := block.Get("text"); t.IsString() {
			all = append(all, t.Text())
		}
	}
	return strings.Join(all, "\n")
}
