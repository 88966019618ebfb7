package hook

import (
	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/why"
	recovery "heartbeat/recover"
)

// isClient reports whether this hook's client is the very process that the entry
// was delivered to. In a container each may have the number 1.
func isClient(e recovery.Evidence) bool {
	pid := claude.PID()
	if pid == 0 && e.Client == 0 {
		return true // one that names itself nowhere
	}
	return int64(pid) == e.Client && e.ClientStart != 0 && clientRuns(e)
}

// sameClient reports whether the entry was handed to the client around this hook:
// its session may have another name by now.
func (h *hook) sameClient(d *inbox.Delivery, e recovery.Evidence) bool {
	if pid := claude.PID(); pid != 0 && e.Client != 0 {
		return int64(pid) == e.Client && clientRuns(e)
	}
	return h.input.SessionID == d.SessionID
}

// clientRuns reports whether the very process lives that the entry was handed to.
func clientRuns(e recovery.Evidence) bool { return why.LifeOfClient(e) == why.Alive }

// clientGone reports whether it is certain that it does not.
func clientGone(e recovery.Evidence) bool {
	life := why.LifeOfClient(e)
	return life == why.Gone || life == why.Rebooted
}
