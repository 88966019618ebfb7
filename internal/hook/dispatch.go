package hook

import (
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
)

// dispatch acts on the event. An event of a subagent is nobody's answer, and an
// unknown one none of our business: both leave everything as it is.
func (h *hook) dispatch() int {
	in := h.input
	if in == nil {
		return h.stop()
	}
	if in.Event == claude.EventPostToolBatch {
		return h.afterTools()
	}
	if in.AgentID != "" {
		return cli.ExitOK
	}
	if in.Event == claude.EventSessionStart && in.Source == "compact" {
		return cli.ExitOK // the same session goes on in the same process
	}
	if h.runs != nil {
		h.runs.Greet()
	}
	if in.Event == claude.EventStop || in.Event == "" {
		if h.othersGoOn() {
			return cli.ExitOK
		}
		h.awaitSpending()
	}
	if h.Rewake {
		if status, ok := h.inBackground(); ok {
			return status
		}
	}
	switch in.Event {
	case claude.EventStop, "":
		return h.stop()
	case claude.EventStopFailure:
		return h.stopFailure()
	case claude.EventSessionStart:
		return h.record(func(tx *inbox.Tx) error {
			h.chargeStart(tx)
			return tx.StartSessionWith(in.SessionID, h.clientPID(), agent.StartNote(in.TranscriptPath))
		})
	case claude.EventSessionEnd:
		return h.record(h.endSession)
	case claude.EventUserPromptSubmit:
		if h.Start != "" {
			return h.record(h.startedWith)
		}
		if strings.HasPrefix(strings.TrimSpace(in.Prompt), claude.TaskNotification) {
			return h.record(h.toldOfTask)
		}
		if in.PromptID == "" { // nothing else tells this turn from one that was stopped
			return h.record(func(tx *inbox.Tx) error { tx.ForgetStopped(in.SessionID); return nil })
		}
		return h.askedElse()
	case claude.EventNotification:
		return h.notified()
	}
	return cli.ExitOK
}
