package claude

import (
	"strings"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/flat"
)

// Finished reports whether the transcript shows that the text's turn ended: an answer, followed by the client's note
// that the hooks of a Stop ran and none continued the turn. A turn that a person or an error ended has no such note.
// reply is the answer's last text.
func (d Delivery) Finished() (reply string, finished bool) {
	r := d.reading()
	var e ending
	err := d.each(func(l *flat.Members, at int64) {
		e.begun = e.begun || l.Exists("uuid") && r.answers(l)
		if e.add(l); l.Exists("uuid") {
			r.add(l, at)
		}
	})
	return e.reply, err == nil && e.finished
}

// ending recognises the end of a turn, line by line. A hook may have continued the turn, and the client may have
// overridden that hook.
type ending struct {
	held, overridden      bool
	begun, over, finished bool // set begun once the lines are the turn's
	reply                 string
}

func (e *ending) add(l *flat.Members) {
	ends := e.isEnd(l)
	switch {
	case !e.begun || e.over || !l.Exists("uuid"):
	case isAnswer(l):
		if text := textOf(l); text != "" {
			e.reply = text
		}
	case ends:
		e.over, e.finished = true, e.reply != ""
	case isTurn(l) && !IsToolResult(l): // a prompt, or an error instead of an answer
		e.over = true
	}
}

func (e *ending) isEnd(l *flat.Members) bool {
	switch {
	case isAnswer(l):
		e.held, e.overridden = false, false
	case isOverride(l):
		e.overridden = true
		return e.held
	case isSummary(l):
		report := summaryOf(l)
		e.held = len(report.Blocks) > 0 && !report.Ended
		return !e.held || e.overridden
	}
	return false
}

// textOf returns the text in a line of the model's, without tool calls.
func textOf(l *flat.Members) string {
	var all []string
	for _, block := range l.Value("message").Get("content").Items() {
		if t := block.Get("text"); t.IsString() {
			all = append(all, t.Text())
		}
	}
	return strings.Join(all, "\n")
}

// Interrupted reports whether a person ended this prompt's turn, by Esc or by refusing a tool. It reads only the last
// 256 KiB of the transcript.
func Interrupted(path, promptID string, from int64) (interrupted bool) {
	err := handed.Back(path, from, TranscriptSize(path), func(line []byte) {
		l := flat.Begun(line)
		interrupted = interrupted || isPrompt(l) && l.String("promptId") == promptID && strings.HasPrefix(textOf(l), "[Request interrupted by user")
	})
	return err == nil && promptID != "" && interrupted
}

// Prompted is a text that became a prompt, and where the transcript may show it: a client was started with it, or it woke
// the session.
type Prompted struct {
	Path     string // of the session's transcript
	Size     int64  // of the transcript before that, in bytes
	Text     string
	PromptID string // the prompt that the client made of the text, empty if unknown
	Wakes    bool   // the text woke the session: see [IsWakePrompt]
}

// Asked reports whether the transcript shows the text as the prompt with this id, or as any prompt if promptID is
// empty. The client writes about a tenth of a second late, so false may become true.
func (p Prompted) Asked(promptID string) bool {
	asked := false
	err := p.each(func(l *flat.Members) { asked = asked || p.matches(l, promptID) })
	return err == nil && asked
}

// Finished is [Delivery.Finished] for the prompt's turn.
func (p Prompted) Finished() (reply string, finished bool) {
	var e ending
	err := p.each(func(l *flat.Members) {
		e.add(l)
		e.begun = e.begun || l.Exists("uuid") && p.matches(l, p.PromptID)
	})
	return e.reply, err == nil && e.finished
}

func (p Prompted) each(f func(*flat.Members)) error {
	return Delivery{Path: p.Path, Size: p.Size}.each(func(l *flat.Members, _ int64) { f(l) })
}

// matches recognises the prompt with exactly this text, or the one that passes it on.
func (p Prompted) matches(l *flat.Members, promptID string) bool {
	if l.String("type") != "user" || promptID != "" && l.String("promptId") != promptID {
		return false
	}
	content := l.Value("message").Get("content")
	if p.Wakes {
		return IsWakePrompt(content.Text(), p.Text)
	}
	blocks := content.Items()
	return isPrompt(l) && (content.IsString() && content.Text() == p.Text || len(blocks) == 1 && blocks[0].Get("text").Text() == p.Text)
}
