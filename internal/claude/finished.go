package claude

import (
	"strings"

	"heartbeat/internal/flat"
)

// Finished reports whether the transcript shows that the text's turn ended: an
// answer, followed by the client's note that the hooks of a Stop ran. A turn that
// a person or an error ended has no such note. The reply is the last text of the
// answer.
func (d Delivery) Finished() (reply string, finished bool) {
	r := d.reading()
	begun, over := false, false
	err := d.each(func(l *flat.Members, at int64) {
		switch {
		case over || !l.Is("uuid"):
			return
		case r.answers(l), begun && isAnswer(l):
			begun = true
			if text := textOf(l); text != "" {
				reply = text
			}
		case begun && isSummary(l):
			over, finished = true, reply != ""
		case begun && isTurn(l) && !isToolResult(l): // a prompt, or an error instead of an answer
			over = true
		}
		r.take(l, at)
	})
	return reply, err == nil && finished
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
