package hook

import (
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/why"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
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

// isWithAnother reports whether the entry in flight is a run's, and another session
// that lives is at it: its own next Stop decides. Handing it to this one would have it
// done twice, and each would take it from the other until its attempts are used up.
func (h *hook) isWithAnother(tx *inbox.Tx, d *inbox.Delivery, v verdict) (bool, error) {
	if _, ofRun := effect.MarkOf(d); !ofRun || v != orphaned || h.input == nil || d.SessionID == h.input.SessionID {
		return false, nil
	}
	s, err := tx.Session(d.SessionID)
	if err != nil || s.EndedAt != nil || s.PID == claude.PID() || why.LifeOf(s) != why.Alive {
		return false, err
	}
	h.Note("entry %s is with session %s (process %d), which lives: it is left to that one", d.ID(), words.Short(s.ID), s.PID)
	h.lookAgainIn(maxRecheck)
	return true, nil
}
