package hook

import (
	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/host"
	recovery "heartbeat/recover"
)

// client is what is known of the client that this hook serves.
func (h *hook) client() *agent.Agent {
	if h.input == nil {
		return agent.Of("")
	}
	return agent.Of(h.input.TranscriptPath)
}

// clientPID is its process, or 0. It is looked for once: for a client that does not name it,
// the processes above this one are asked.
func (h *hook) clientPID() int {
	if h.input == nil {
		return h.client().PID(h.parent)
	}
	if !h.clientSought {
		h.clientIs, h.clientSought = h.client().PID(h.parent), true
	}
	return h.clientIs
}

// isClient reports whether this hook's client is the very process that the entry
// was delivered to. In a container each may have the number 1.
func isClient(pid int, e recovery.Evidence) bool {
	if pid == 0 && e.Client == 0 {
		return true // one that names itself nowhere
	}
	return int64(pid) == e.Client && e.ClientStart != 0 && clientRuns(e)
}

// sameClient reports whether the entry was handed to the client around this hook:
// its session may have another name by now.
func (h *hook) sameClient(d *inbox.Delivery, e recovery.Evidence) bool {
	if pid := h.clientPID(); pid != 0 && e.Client != 0 {
		return int64(pid) == e.Client && clientRuns(e)
	}
	return h.input.SessionID == d.SessionID
}

// clientRuns reports whether the very process lives that the entry was handed to.
func clientRuns(e recovery.Evidence) bool { return e.Process().Life() == host.Alive }

// clientGone reports whether it is certain that it does not.
func clientGone(e recovery.Evidence) bool {
	return e.Process().Life().Ended()
}
