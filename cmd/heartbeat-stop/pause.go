package main

import (
	"heartbeat/cmd/heartbeat-stop/why"
	"heartbeat/inbox"
)

// notePause says once why nothing is delivered.
func (h *hook) notePause(p inbox.Pause) {
	if p.At.Equal(h.paused.At) && p.Reason == h.paused.Reason {
		return
	}
	h.paused = p
	h.note("%s: nothing is delivered, and heartbeat-stop resume goes on", why.Pause(p))
}
