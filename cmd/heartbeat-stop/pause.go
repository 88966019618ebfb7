package main

import (
	"heartbeat/cmd/heartbeat-stop/why"
	"heartbeat/inbox"
)

// notePause says once why nothing is delivered.
func (h *hook) notePause(p inbox.Pause) {
	said := why.Pause(p)
	if said == h.paused {
		return
	}
	h.paused = said
	h.note("%s: nothing is delivered until %s", said, why.PauseEnds(p))
}
