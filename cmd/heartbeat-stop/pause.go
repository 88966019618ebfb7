package main

import (
	"heartbeat/cmd/heartbeat-stop/why"
	"heartbeat/inbox"
)

// notePause says once why nothing is delivered, and once that it goes on.
func (h *hook) notePause(p *inbox.Pause) {
	said := ""
	if p != nil {
		said = why.Pause(*p)
	}
	switch {
	case said == h.paused:
	case p == nil:
		h.note("delivery goes on: it was %s", h.paused)
	default:
		h.note("%s: nothing is delivered until %s", said, why.PauseEnds(*p))
	}
	h.paused = said
}
