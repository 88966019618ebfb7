package hook

import (
	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/why"
	recovery "heartbeat/recover"
)

// clientRuns reports whether the very process lives that the entry was handed to.
func clientRuns(e recovery.Evidence) bool { return why.LifeOfClient(e) == why.Alive }

// clientGone reports whether it is certain that it does not.
func clientGone(e recovery.Evidence) bool {
	life := why.LifeOfClient(e)
	return life == why.Gone || life == why.Rebooted
}

// sameClient reports whether the entry was handed to the client around this hook:
// its session may have another name by now.
func (h *hook) sameClient(d *inbox.Delivery, e recovery.Evidence) bool {
	if pid := claude.PID(); pid != 0 && e.Client != 0 {
		return int64(pid) == e.Client && clientRuns(e)
	}
	return h.input.SessionID == d.SessionID
}

// judgeWoken is judge for an entry that was to wake its session. The turn that
// it became has the prompt_id with which the client announced it. Until then the
// client keeps it behind what a person has typed.
func (h *hook) judgeWoken(tx *inbox.Tx, d *inbox.Delivery, e recovery.Evidence) verdict {
	in := h.input
	switch {
	case e.Bound && in.SessionID == d.SessionID && in.PromptID == d.PromptID:
		return answered
	case !e.Bound && in.SessionID == d.SessionID && in.PromptID != "" && e.Seen(d).Woke(in.PromptID):
		return answered // the announcement was missed
	case !h.sameClient(d, e) && clientRuns(e):
		return pending // another session is at it
	case !e.Bound && h.sameClient(d, e):
		return pending
	}
	return h.leftBehind(tx, d)
}
