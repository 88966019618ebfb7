package main

import (
	"fmt"
	"time"

	"heartbeat/inbox"
)

// notePause says once why nothing is delivered.
func (h *hook) notePause(p inbox.Pause) {
	if p.At.Equal(h.paused.At) && p.Reason == h.paused.Reason {
		return
	}
	h.paused = p
	h.note("%s: nothing is delivered, and heartbeat-stop resume goes on", pauseSentence(p))
}

func pauseSentence(p inbox.Pause) string {
	s := "paused since " + stamp(p.At)
	if p.Until != nil {
		s += " until " + stamp(*p.Until)
	}
	if p.Reason != "" {
		s += fmt.Sprintf(" (%s)", p.Reason)
	}
	return s
}

// stamp is a time for people: local, to the second.
func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
