package claude

import (
	"strings"

	"heartbeat/internal/flat"
)

// Finished reports whether the transcript shows that the text's turn ended: an
// answer, followed by the client's note that the hooks of a Stop ran, and that none
// of them had the turn go on. A turn that a person or an error ended has no such
// note. The reply is the last text of the answer.
func (d Delivery) Finished() (reply string, finished bool) {
	r := d.reading()
	begun, over := false, false
	var e ending
	err := d.each(func(l *flat.Members, at int64) {
		ends := e.shows(l)
		switch {
		case over || !l.Is("uuid"):
			return
		case r.answers(l), begun && isAnswer(l):
			begun = true
			if text := textOf(l); text != "" {
				reply = text
			}
		case begun && ends:
			over, finished = true, reply != ""
		case begun && isTurn(l) && !isToolResult(l): // a prompt, or an error instead of an answer
			over = true
		}
		r.take(l, at)
	})
	return reply, err == nil && finished
}

// ending recognises the end of a turn, line by line. A hook may have had the turn go on,
// and the client may have overridden that.
type ending struct{ held, overridden bool }

func (e *ending) shows(l *flat.Members) bool {
	switch {
	case isAnswer(l):
		*e = ending{}
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
