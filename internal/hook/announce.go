package hook

import (
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// announcement is what the person at the terminal is shown of an entry, "" for
// nothing.
func (h *hook) announcement(e inbox.Entry) string {
	if h.runs != nil {
		if text := h.runs.Announce(e); text != "" {
			return "heartbeat: " + words.Brief(text)
		}
	}
	if !h.Announce {
		return ""
	}
	name := e.ID
	if name == "" {
		name = words.Short(e.EntryID)
	}
	text := "heartbeat: entry " + words.Brief(name)
	if e.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	return text
}
