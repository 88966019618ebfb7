package claude

import "heartbeat/internal/flat"

// Prompted is a text that a client got as its prompt at its start, with what is needed to find it in the transcript.
type Prompted struct {
	Path string // of the session's transcript
	Size int64  // of the transcript before that start, in bytes
	Text string
	// PromptID is the prompt that the client made of the text, empty if unknown.
	PromptID string
}

// Asked reports whether the transcript shows the text as the prompt with this id, or as any prompt if promptID is
// empty. The client writes about a tenth of a second late, so false may become true.
func (p Prompted) Asked(promptID string) bool {
	asked := false
	err := p.each(func(l *flat.Members) { asked = asked || p.is(l, promptID) })
	return err == nil && asked
}

// Finished is [Delivery.Finished] for the prompt's turn.
func (p Prompted) Finished() (reply string, finished bool) {
	var e ending
	err := p.each(func(l *flat.Members) {
		e.take(l)
		e.begun = e.begun || l.Is("uuid") && p.is(l, p.PromptID)
	})
	return e.reply, err == nil && e.finished
}

func (p Prompted) each(f func(*flat.Members)) error {
	return Delivery{Path: p.Path, Size: p.Size}.each(func(l *flat.Members, _ int64) { f(l) })
}

// is recognises the prompt with exactly this text.
func (p Prompted) is(l *flat.Members, promptID string) bool {
	if !isPrompt(l) || promptID != "" && l.String("promptId") != promptID {
		return false
	}
	content := l.Value("message").Get("content")
	blocks := content.Items()
	return content.IsString() && content.Text() == p.Text || len(blocks) == 1 && blocks[0].Get("text").Text() == p.Text
}
